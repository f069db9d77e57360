/* SPDX-License-Identifier: Apache-2.0 */
#include "server/interface.h"
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <string.h>
#include <sys/socket.h>

int
interface_address(const char *key, const char *name, bool prefers_ipv6,
    char out[ENDPOINT_TEXT_SIZE], struct error *err)
{
	int preferred = prefers_ipv6 ? AF_INET6 : AF_INET;
	struct ifaddrs *all = NULL;
	bool is_found = false, exists = false;

	if (getifaddrs(&all) != 0)
		return error_set_errno(err, errno, "%s: %s", key, name);
	for (const struct ifaddrs *each = all; each != NULL; each = each->ifa_next) {
		int family = each->ifa_addr == NULL ? AF_UNSPEC : each->ifa_addr->sa_family;
		const void *address;

		if (strcmp(each->ifa_name, name) != 0)
			continue;
		exists = true;
		if ((family != AF_INET && family != AF_INET6) || (is_found && family != preferred))
			continue;
		address = family == AF_INET
		    ? (const void *)&((const struct sockaddr_in *)each->ifa_addr)->sin_addr
		    : (const void *)&((const struct sockaddr_in6 *)each->ifa_addr)->sin6_addr;
		if (inet_ntop(family, address, out, ENDPOINT_TEXT_SIZE) == NULL)
			continue;
		is_found = true;
		if (family == preferred)
			break;
	}
	freeifaddrs(all);
	if (is_found)
		return 0;
	return error_set(err, ERROR_CONFIG,
	    exists ? "Configured %s \"%s\" was found, but had no addresses"
		   : "Configured %s \"%s\" could not be found",
	    key, name);
}
