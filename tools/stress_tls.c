/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_connection.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/*
 * The stores that -transport names. cassandra-stress reads Java's; OpenSSL reads PEM and PKCS#12, which
 * keytool has written by default since Java 9. The older JKS starts with FE ED FE ED.
 */

static int
stress_tls_error(const char *file, const char *what, struct error *err)
{
	unsigned long code = ERR_get_error();
	char text[256] = "";

	if (code != 0)
		ERR_error_string_n(code, text, sizeof(text));
	ERR_clear_error();
	return error_set(
	    err, ERROR_CONFIG, "%s: %s%s%s", file, what, *text != '\0' ? ": " : "", text);
}

static int
stress_tls_password_cb(char *buffer, int size, int is_writing, void *user)
{
	(void)is_writing;
	return user != NULL ? snprintf(buffer, (size_t)size, "%s", (const char *)user) : 0;
}

/* The store as PKCS#12, or NULL where the file is none (then it is PEM). */
static int
stress_tls_read_pkcs12(const char *file, PKCS12 **out, struct error *err)
{
	unsigned char start[4] = {0};
	FILE *stream = fopen(file, "rb");

	*out = NULL;
	if (stream == NULL)
		return error_set_errno(err, errno, "%s", file);
	if (fread(start, 1, sizeof(start), stream) == sizeof(start) &&
	    memcmp(start, "\xfe\xed\xfe\xed", 4) == 0) {
		fclose(stream);
		return error_set(err, ERROR_CONFIG,
		    "%s: a JKS keystore; convert it with: keytool -importkeystore -srckeystore %s "
		    "-destkeystore store.p12 -deststoretype PKCS12",
		    file, file);
	}
	if (start[0] == 0x30) { /* a DER sequence */
		rewind(stream);
		*out = d2i_PKCS12_fp(stream, NULL);
	}
	fclose(stream);
	ERR_clear_error();
	return 0;
}

static int
stress_tls_trust(SSL_CTX *context, const char *file, const char *password, struct error *err)
{
	X509_STORE *store = SSL_CTX_get_cert_store(context);
	STACK_OF(X509) *authorities = NULL;
	EVP_PKEY *key = NULL;
	X509 *own = NULL;
	PKCS12 *pkcs12;
	int rc = 0;

	if (stress_tls_read_pkcs12(file, &pkcs12, err) != 0)
		return -1;
	if (pkcs12 == NULL)
		return SSL_CTX_load_verify_locations(context, file, NULL) == 1
		    ? 0
		    : stress_tls_error(file, "no certificates in it", err);
	if (PKCS12_parse(pkcs12, password != NULL ? password : "", &key, &own, &authorities) != 1)
		rc = stress_tls_error(
		    file, "cannot be opened (-transport truststore-password=)", err);
	for (int i = 0; rc == 0 && i < sk_X509_num(authorities); i++)
		X509_STORE_add_cert(store, sk_X509_value(authorities, i));
	if (rc == 0 && own != NULL)
		X509_STORE_add_cert(store, own);
	ERR_clear_error();
	sk_X509_pop_free(authorities, X509_free);
	X509_free(own);
	EVP_PKEY_free(key);
	PKCS12_free(pkcs12);
	return rc;
}

static int
stress_tls_identity(SSL_CTX *context, const char *file, const char *password, struct error *err)
{
	EVP_PKEY *key = NULL;
	X509 *own = NULL;
	PKCS12 *pkcs12;
	int rc = 0;

	if (stress_tls_read_pkcs12(file, &pkcs12, err) != 0)
		return -1;
	if (pkcs12 == NULL) {
		SSL_CTX_set_default_passwd_cb(context, stress_tls_password_cb);
		SSL_CTX_set_default_passwd_cb_userdata(context, (void *)password);
		if (SSL_CTX_use_certificate_chain_file(context, file) != 1 ||
		    SSL_CTX_use_PrivateKey_file(context, file, SSL_FILETYPE_PEM) != 1)
			return stress_tls_error(file, "no certificate and key in it", err);
		return 0;
	}
	if (PKCS12_parse(pkcs12, password != NULL ? password : "", &key, &own, NULL) != 1 ||
	    SSL_CTX_use_certificate(context, own) != 1 || SSL_CTX_use_PrivateKey(context, key) != 1)
		rc =
		    stress_tls_error(file, "cannot be opened (-transport keystore-password=)", err);
	X509_free(own);
	EVP_PKEY_free(key);
	PKCS12_free(pkcs12);
	return rc;
}

/*
 * Names as Java has them (the standard's) or as OpenSSL has. Those of TLS 1.3 are a list of their own; where one
 * of both lists is empty, its versions are not spoken.
 */
static int
stress_tls_choose_ciphers(SSL_CTX *context, const char *names, struct error *err)
{
	char old[4096] = "", new[1024] = "", name[128];
	size_t size;

	for (; *names != '\0'; names += size + (names[size] != '\0')) {
		const char *own = name;
		char *list = old;
		size_t room = sizeof(old);

		size = strcspn(names, ",:");
		snprintf(name, sizeof(name), "%.*s", (int)size, names);
		if (size == 0)
			continue;
		if (strncmp(name, "TLS_AES_", 8) == 0 || strncmp(name, "TLS_CHACHA20_", 13) == 0) {
			list = new;
			room = sizeof(new);
		} else if (strncmp(name, "TLS_", 4) == 0) {
			own = OPENSSL_cipher_name(name);
		}
		if (strlen(list) + strlen(own) + 2 > room || strcmp(own, "(NONE)") == 0)
			return error_set(err, ERROR_CONFIG, "%s: no such cipher", name);
		snprintf(list + strlen(list), room - strlen(list), "%s%s", *list != '\0' ? ":" : "",
		    own);
	}
	if ((*old != '\0' && SSL_CTX_set_cipher_list(context, old) != 1) ||
	    SSL_CTX_set_ciphersuites(context, new) != 1)
		return stress_tls_error("ssl-ciphers=", "no such cipher", err);
	if (*old == '\0')
		SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
	if (*new == '\0')
		SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
	return 0;
}

int
stress_tls_init(struct stress_tls *tls, const struct stress_settings *settings, struct error *err)
{
	tls->context = NULL;
	if (!settings->is_encrypted)
		return 0;
	tls->context = SSL_CTX_new(TLS_client_method());
	if (tls->context == NULL)
		return stress_tls_error("TLS", "no memory", err);
	SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
	SSL_CTX_set_mode(
	    tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
	if (strcasecmp(settings->tls_protocol, "TLSv1.3") == 0)
		SSL_CTX_set_min_proto_version(tls->context, TLS1_3_VERSION);
	else if (strcasecmp(settings->tls_protocol, "TLSv1.2") == 0)
		SSL_CTX_set_max_proto_version(tls->context, TLS1_2_VERSION);
	if (settings->ciphers != NULL &&
	    stress_tls_choose_ciphers(tls->context, settings->ciphers, err) != 0)
		goto failed;
	if (stress_tls_trust(
		tls->context, settings->trust_store, settings->trust_store_password, err) != 0)
		goto failed;
	if (settings->key_store != NULL &&
	    stress_tls_identity(
		tls->context, settings->key_store, settings->key_store_password, err) != 0)
		goto failed;
	return 0;
failed:
	stress_tls_fini(tls);
	return -1;
}

void
stress_tls_fini(struct stress_tls *tls)
{
	SSL_CTX_free(tls->context);
	tls->context = NULL;
}
