/* SPDX-License-Identifier: Apache-2.0 */
/* helenusd: one node in the foreground. See helenusd(8). */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "server/config.h"
#include "server/internode.h"
#include "server/node.h"

/* jemalloc's: many threads and few arenas, so that memory that one thread frees serves the others. */
extern const char *malloc_conf;
const char *malloc_conf = "narenas:4";

#define MAIN_CONFIG_DEFAULT HELENUS_SYSCONFDIR "/helenus.yaml"

enum {
	EXIT_RUNTIME = 1,
	EXIT_USAGE = 2,
	EXIT_WRONG_STATE = 100,
	MAIN_OPTIONS_MAX = 256,
	MAIN_REPORT_MS = 5000
};

struct main_options {
	const char *config_path; /* NULL: the default, if it is there */
	const char *overrides[MAIN_OPTIONS_MAX];
	int override_count;
	const char *pid_path;
};

static void
main_usage(FILE *out)
{
	fputs("usage: helenusd [-c FILE] [-D key=value]... [-f] [-p PIDFILE] [-v] [-h]\n"
	      "\n"
	      "  -c FILE        configuration (default " MAIN_CONFIG_DEFAULT
	      ", or etc/helenus.yaml beside the source)\n"
	      "  -D key=value   override one key of the configuration; nested keys with dots\n"
	      "  -f             stay in the foreground (it always does)\n"
	      "  -p PIDFILE     write the process id there\n"
	      "  -v, --version  print the version\n"
	      "  -h, --help     print this\n"
	      "\n"
	      "One line \"ready: CQL clients on ADDRESS:PORT\" tells that clients are served.\n",
	    out);
}

/* Returns -1 to go on, or the exit status. */
static int
main_parse(int argc, char **argv, struct main_options *options)
{
	static const struct option longs[] = {{"version", no_argument, NULL, 'v'},
	    {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int option;

	while ((option = getopt_long(argc, argv, "c:D:fp:vhR", longs, NULL)) != -1) {
		switch (option) {
		case 'c':
			options->config_path = optarg;
			break;
		case 'D':
			if (options->override_count == MAIN_OPTIONS_MAX) {
				fprintf(stderr, "helenusd: too many -D\n");
				return EXIT_USAGE;
			}
			options->overrides[options->override_count++] = optarg;
			break;
		case 'f':
		case 'R':
			break;
		case 'p':
			options->pid_path = optarg;
			break;
		case 'v':
			printf(
			    "helenusd %s (Cassandra %s)\n", PACKAGE_VERSION, NODE_RELEASE_VERSION);
			return 0;
		case 'h':
			main_usage(stdout);
			return 0;
		default:
			main_usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "helenusd: what is '%s'?\n", argv[optind]);
		main_usage(stderr);
		return EXIT_USAGE;
	}
	return -1;
}

/* etc/helenus.yaml beside the source: the program lies in build/ there. */
static char *
main_default_config(void)
{
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *beside = NULL, *slash;

	if (length > 0) {
		path[length] = '\0';
		for (int up = 0; up < 2 && (slash = strrchr(path, '/')) != NULL; up++)
			*slash = '\0';
		beside = xasprintf("%s/etc/helenus.yaml", path);
		if (access(beside, R_OK) == 0)
			return beside;
		free(beside);
	}
	return access(MAIN_CONFIG_DEFAULT, R_OK) == 0 ? xstrdup(MAIN_CONFIG_DEFAULT) : NULL;
}

static int
main_configure(const struct main_options *options, struct config *config, struct error *err)
{
	enum log_level level;
	char *path =
	    options->config_path != NULL ? xstrdup(options->config_path) : main_default_config();
	int rc = 0;

	config_init(config);
	if (path != NULL)
		rc = config_read_file(config, path, err);
	free(path);
	for (int i = 0; rc == 0 && i < options->override_count; i++)
		rc = config_set_option(config, options->overrides[i], err);
	if (rc == 0 && log_level_parse(config->log_level, &level) == 0)
		log_set_level("ROOT", level);
	if (rc == 0)
		rc = config_finish(config, err);
	if (rc == 0 && (config->log_file != NULL || strcmp(config->log_format, "json") == 0) &&
	    log_open(config->log_file, strcmp(config->log_format, "json") == 0) != 0)
		rc = error_set_errno(err, errno, "log_file: %s", config->log_file);
	if (rc == 0)
		rc = config_check_support(config, err);
	return rc;
}

/* sd_notify(3) without the library: one datagram to the socket that the manager named. */
static void
main_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length;
	int fd;

	if (path == NULL || (path[0] != '/' && path[0] != '@') ||
	    strlen(path) >= sizeof(address.sun_path))
		return;
	length = strlen(path);
	memcpy(address.sun_path, path, length);
	if (address.sun_path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
	close(fd);
}

static int
main_write_pid(const char *path, struct error *err)
{
	FILE *file = path == NULL ? NULL : fopen(path, "we");

	if (path == NULL)
		return 0;
	if (file == NULL || fprintf(file, "%ld\n", (long)getpid()) < 0 || fclose(file) != 0)
		return error_set_errno(err, errno, "pid file %s", path);
	return 0;
}

/* A connection, an SSTable, a segment each take a descriptor: use what the system allows. */
static void
main_raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < 10000)
		log_warn("only %lu files may be open at once; raise it with ulimit -n",
		    (unsigned long)limit.rlim_cur);
}

static void
main_reload(struct node *node)
{
	struct error err;

	if (network_reload_tls(node->network, &err) != 0)
		log_error("SIGHUP: %s", err.text);
	if (node->internode != NULL && internode_reload_tls(node->internode, &err) != 0)
		log_error("SIGHUP: %s", err.text);
	if (node->config->path != NULL) {
		struct config fresh;
		enum log_level level;

		config_init(&fresh);
		if (config_read_again(node->config, &fresh, &err) != 0)
			log_error("SIGHUP: %s", err.text);
		else if (log_level_parse(fresh.log_level, &level) == 0)
			log_set_level("ROOT", level);
		config_fini(&fresh);
	}
	log_info("SIGHUP: TLS files and log level read again");
}

/* Serve until a signal or nodetool stopdaemon says stop. */
static void
main_serve(struct node *node, int signal_fd)
{
	struct pollfd fds[2] = {
	    {.fd = signal_fd, .events = POLLIN}, {.fd = node->stop_fd, .events = POLLIN}};

	for (;;) {
		struct signalfd_siginfo info;
		int ready = poll(fds, 2, MAIN_REPORT_MS);

		if (ready < 0 && errno != EINTR)
			return;
		if (ready <= 0) {
			node_tick(node, MAIN_REPORT_MS);
			continue;
		}
		if (fds[1].revents != 0)
			return;
		if (fds[0].revents == 0 || read(signal_fd, &info, sizeof(info)) != sizeof(info))
			continue;
		if (info.ssi_signo != SIGHUP) {
			log_info("%s: stopping", strsignal((int)info.ssi_signo));
			return;
		}
		main_reload(node);
	}
}

static int
main_run(const struct config *config, struct env *env, int signal_fd)
{
	struct error err;
	struct node node;
	int rc = 0;

	node_init(&node, config, env);
	if (node_start(&node, &err) != 0) {
		log_error("%s", err.text);
		rc = err.code == ERROR_CONFIG       ? EXIT_USAGE
		    : err.code == ERROR_WRONG_STATE ? EXIT_WRONG_STATE
						    : EXIT_RUNTIME;
	} else {
		if (config->start_native_transport) {
			printf("ready: CQL clients on %s:%u\n", config->rpc_address,
			    network_port(node.network));
			fflush(stdout);
		}
		main_notify("READY=1");
		main_serve(&node, signal_fd);
		main_notify("STOPPING=1");
		if (node_drain(&node, &err) != 0) {
			log_error("%s", err.text);
			rc = EXIT_RUNTIME;
		}
	}
	node_fini(&node);
	return rc;
}

int
main(int argc, char **argv)
{
	struct main_options options = {0};
	struct config config;
	struct env *env;
	struct error err;
	sigset_t signals;
	int status = main_parse(argc, argv, &options), signal_fd;

	if (status >= 0)
		return status;
	log_thread_name("main");
	/* Blocked before the first thread: all of them inherit it, and only main hears signals. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (main_configure(&options, &config, &err) != 0 ||
	    main_write_pid(options.pid_path, &err) != 0) {
		fprintf(stderr, "helenusd: %s\n", err.text);
		config_fini(&config);
		return EXIT_USAGE;
	}
	main_raise_limits();
	env = env_posix_new();
	status = main_run(&config, env, signal_fd);
	if (options.pid_path != NULL)
		unlink(options.pid_path);
	env_free(env);
	config_fini(&config);
	return status;
}
