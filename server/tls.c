/* SPDX-License-Identifier: Apache-2.0 */
#include "server/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/refs.h"
#include "server/config.h"

struct tls_context {
	atomic_uint refs; /* one of the network, one of each session */
	SSL_CTX *ssl; /* owned */
	bool verifies_endpoints;
};

struct tls_session {
	struct tls_context *context; /* shared */
	SSL *ssl; /* owned */
	bool wants_write;
	char reason[160]; /* of the last failure */
};

void
tls_client_options(const struct config *config, struct tls_options *out)
{
	*out = (struct tls_options){
	    .section = "client_encryption_options",
	    .keystore = config->client_encryption_options__keystore,
	    .keystore_password = config->client_encryption_options__keystore_password,
	    .truststore = config->client_encryption_options__truststore,
	    .private_key =
		config->client_encryption_options__ssl_context_factory__parameters__private_key,
	    .private_key_password =
		config
		    ->client_encryption_options__ssl_context_factory__parameters__private_key_password,
	    .trusted_certificates =
		config
		    ->client_encryption_options__ssl_context_factory__parameters__trusted_certificates,
	    .require_client_auth = config->client_encryption_options__require_client_auth,
	    .cipher_suites = &config->client_encryption_options__cipher_suites,
	    .accepted_protocols = &config->client_encryption_options__accepted_protocols,
	};
}

void
tls_internode_options(const struct config *config, struct tls_options *out)
{
	*out = (struct tls_options){
	    .section = "server_encryption_options",
	    .keystore = config->server_encryption_options__keystore,
	    .keystore_password = config->server_encryption_options__keystore_password,
	    .truststore = config->server_encryption_options__truststore,
	    .private_key =
		config->server_encryption_options__ssl_context_factory__parameters__private_key,
	    .private_key_password =
		config
		    ->server_encryption_options__ssl_context_factory__parameters__private_key_password,
	    .trusted_certificates =
		config
		    ->server_encryption_options__ssl_context_factory__parameters__trusted_certificates,
	    .require_client_auth = config->server_encryption_options__require_client_auth,
	    .connects = true,
	    .require_endpoint_verification =
		config->server_encryption_options__require_endpoint_verification,
	    .cipher_suites = &config->server_encryption_options__cipher_suites,
	    .accepted_protocols = &config->server_encryption_options__accepted_protocols,
	};
}

static int
tls_error(struct error *err, const struct tls_options *options, const char *key, const char *file)
{
	unsigned long code = ERR_peek_last_error();
	char text[160] = "no detail";

	if (code != 0)
		ERR_error_string_n(code, text, sizeof(text));
	ERR_clear_error();
	return error_set(err, ERROR_CONFIG,
	    "%s.%s: %s: %s. A PEM file is needed (a Java keystore can be "
	    "converted with keytool -importkeystore -deststoretype pkcs12 and openssl pkcs12)",
	    options->section, key, file, text);
}

static int
tls_password(char *out, int size, int is_writing, void *argument)
{
	const char *password = argument;
	size_t length = password == NULL ? 0 : strlen(password);

	(void)is_writing;
	if (length > (size_t)size)
		return 0;
	for (size_t i = 0; i < length; i++) /* OpenSSL wants the length, not a NUL */
		out[i] = password[i];
	return (int)length;
}

/* private_key of PEMBasedSslContextFactory: key and certificate chain in one text. */
static int
tls_use_text(SSL_CTX *ssl, const struct tls_options *options, struct error *err)
{
	const char *text = options->private_key;
	BIO *bio = BIO_new_mem_buf(text, -1);
	EVP_PKEY *key;
	X509 *certificate;
	int rc = -1, count = 0;

	key =
	    PEM_read_bio_PrivateKey(bio, NULL, tls_password, (void *)options->private_key_password);
	if (key == NULL || SSL_CTX_use_PrivateKey(ssl, key) != 1) {
		tls_error(err, options, "ssl_context_factory.parameters.private_key", "key");
		goto done;
	}
	BIO_free(bio);
	bio = BIO_new_mem_buf(text, -1);
	while ((certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
		if (count++ == 0) {
			SSL_CTX_use_certificate(ssl, certificate);
			X509_free(certificate);
		} else {
			SSL_CTX_add_extra_chain_cert(ssl, certificate);
		}
	}
	ERR_clear_error(); /* the end of the text is an error to OpenSSL */
	if (count == 0) {
		tls_error(
		    err, options, "ssl_context_factory.parameters.private_key", "no certificate");
		goto done;
	}
	rc = 0;
done:
	EVP_PKEY_free(key);
	BIO_free(bio);
	return rc;
}

static int
tls_trust_text(SSL_CTX *ssl, const struct tls_options *options, struct error *err)
{
	BIO *bio = BIO_new_mem_buf(options->trusted_certificates, -1);
	X509_STORE *store = SSL_CTX_get_cert_store(ssl);
	X509 *certificate;
	int count = 0;

	while ((certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
		X509_STORE_add_cert(store, certificate);
		SSL_CTX_add_client_CA(ssl, certificate);
		X509_free(certificate);
		count++;
	}
	ERR_clear_error();
	BIO_free(bio);
	if (count == 0)
		return tls_error(err, options,
		    "ssl_context_factory.parameters.trusted_certificates", "no certificate");
	return 0;
}

static int
tls_load_trust(SSL_CTX *ssl, const struct tls_options *options, struct error *err)
{
	const char *truststore = options->truststore;

	if (options->trusted_certificates != NULL)
		return tls_trust_text(ssl, options, err);
	if (truststore == NULL || SSL_CTX_load_verify_locations(ssl, truststore, NULL) != 1)
		return tls_error(
		    err, options, "truststore", truststore == NULL ? "null" : truststore);
	SSL_CTX_set_client_CA_list(ssl, SSL_load_client_CA_file(truststore));
	return 0;
}

static int
tls_load(SSL_CTX *ssl, const struct tls_options *options, struct error *err)
{
	const char *keystore = options->keystore, *client_auth = options->require_client_auth;
	bool is_optional = client_auth != NULL && strcasecmp(client_auth, "optional") == 0;
	bool is_required = client_auth != NULL &&
	    (strcasecmp(client_auth, "true") == 0 || strcasecmp(client_auth, "required") == 0);

	if (options->private_key != NULL) {
		if (tls_use_text(ssl, options, err) != 0)
			return -1;
	} else {
		SSL_CTX_set_default_passwd_cb(ssl, tls_password);
		SSL_CTX_set_default_passwd_cb_userdata(ssl, (void *)options->keystore_password);
		if (keystore == NULL || SSL_CTX_use_certificate_chain_file(ssl, keystore) != 1 ||
		    SSL_CTX_use_PrivateKey_file(ssl, keystore, SSL_FILETYPE_PEM) != 1)
			return tls_error(
			    err, options, "keystore", keystore == NULL ? "null" : keystore);
		SSL_CTX_set_default_passwd_cb_userdata(ssl, NULL);
	}
	if (SSL_CTX_check_private_key(ssl) != 1)
		return tls_error(
		    err, options, "keystore", "key and certificate do not belong together");
	if ((is_required || is_optional || options->connects) &&
	    tls_load_trust(ssl, options, err) != 0)
		return -1;
	if (is_required || is_optional)
		SSL_CTX_set_verify(ssl,
		    SSL_VERIFY_PEER | (is_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), NULL);
	return 0;
}

/* cipher_suites are Java's names (TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256); OpenSSL knows both lists. */
static int
tls_set_ciphers(SSL_CTX *ssl, const struct tls_options *options, struct error *err)
{
	const struct config_list *suites = options->cipher_suites;
	struct buffer list;
	int rc = 0;

	if (suites->count == 0)
		return 0;
	buffer_init(&list);
	for (size_t i = 0; i < suites->count; i++) {
		const char *name = OPENSSL_cipher_name(suites->items[i]);

		if (name == NULL || strcmp(name, "(NONE)") == 0)
			name = suites->items[i];
		buffer_printf(&list, "%s%s", i == 0 ? "" : ":", name);
	}
	buffer_put_u8(&list, 0);
	if (list.is_failed || SSL_CTX_set_cipher_list(ssl, (const char *)list.data) != 1)
		rc = tls_error(err, options, "cipher_suites", "no suite of the list is known");
	buffer_fini(&list);
	return rc;
}

static int
tls_set_protocols(SSL_CTX *ssl, const struct tls_options *options, struct error *err)
{
	const struct config_list *accepted = options->accepted_protocols;
	int min = TLS1_2_VERSION, max = 0;

	if (accepted->count > 0)
		min = 0;
	for (size_t i = 0; i < accepted->count; i++) {
		int version = strcasecmp(accepted->items[i], "TLSv1.3") == 0 ? TLS1_3_VERSION
		    : strcasecmp(accepted->items[i], "TLSv1.2") == 0         ? TLS1_2_VERSION
									     : 0;

		if (version == 0)
			return error_set(err, ERROR_CONFIG,
			    "%s.accepted_protocols: '%s' is not supported; "
			    "TLSv1.2 and TLSv1.3 are",
			    options->section, accepted->items[i]);
		if (min == 0 || version < min)
			min = version;
		if (version > max)
			max = version;
	}
	SSL_CTX_set_min_proto_version(ssl, min);
	if (max != 0)
		SSL_CTX_set_max_proto_version(ssl, max);
	return 0;
}

int
tls_context_new(const struct tls_options *options, struct tls_context **out, struct error *err)
{
	struct tls_context *context = xzalloc(sizeof(*context));

	atomic_init(&context->refs, 1);
	context->verifies_endpoints = options->require_endpoint_verification;
	context->ssl = SSL_CTX_new(options->connects ? TLS_method() : TLS_server_method());
	if (context->ssl == NULL) {
		free(context);
		return error_set(err, ERROR_NO_MEMORY, "TLS: no context");
	}
	SSL_CTX_set_mode(context->ssl,
	    SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
		SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_options(
	    context->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_session_id_context(context->ssl, (const unsigned char *)"helenus", 7);
	if (tls_load(context->ssl, options, err) != 0 ||
	    tls_set_ciphers(context->ssl, options, err) != 0 ||
	    tls_set_protocols(context->ssl, options, err) != 0) {
		tls_context_unref(context);
		return -1;
	}
	*out = context;
	return 0;
}

struct tls_context *
tls_context_ref(struct tls_context *context)
{
	refs_take(&context->refs);
	return context;
}

void
tls_context_unref(struct tls_context *context)
{
	if (context == NULL || !refs_drop(&context->refs))
		return;
	SSL_CTX_free(context->ssl);
	free(context);
}

static struct tls_session *
tls_session_new(struct tls_context *context, int fd, const char *address)
{
	struct tls_session *session = xzalloc(sizeof(*session));

	session->ssl = SSL_new(context->ssl);
	if (session->ssl == NULL || SSL_set_fd(session->ssl, fd) != 1 ||
	    (context->verifies_endpoints &&
		X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session->ssl), address) != 1)) {
		SSL_free(session->ssl);
		free(session);
		return NULL;
	}
	session->context = tls_context_ref(context);
	return session;
}

struct tls_session *
tls_session_accept(struct tls_context *context, int fd, const char *address)
{
	struct tls_session *session = tls_session_new(context, fd, address);

	if (session != NULL)
		SSL_set_accept_state(session->ssl);
	return session;
}

struct tls_session *
tls_session_connect(struct tls_context *context, int fd, const char *address)
{
	struct tls_session *session = tls_session_new(context, fd, address);

	if (session != NULL) {
		SSL_set_verify(session->ssl, SSL_VERIFY_PEER, NULL);
		SSL_set_connect_state(session->ssl);
	}
	return session;
}

void
tls_session_free(struct tls_session *session)
{
	if (session == NULL)
		return;
	if (SSL_is_init_finished(session->ssl))
		SSL_shutdown(session->ssl); /* close_notify, if the socket takes it */
	ERR_clear_error();
	SSL_free(session->ssl);
	tls_context_unref(session->context);
	free(session);
}

static ssize_t
tls_result(struct tls_session *session, int rc)
{
	int saved = errno;
	int reason = SSL_get_error(session->ssl, rc);

	if (reason == SSL_ERROR_SSL)
		ERR_error_string_n(ERR_peek_last_error(), session->reason, sizeof(session->reason));
	ERR_clear_error();
	session->wants_write = reason == SSL_ERROR_WANT_WRITE;
	switch (reason) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		errno = saved != 0 ? saved : ECONNRESET;
		return -1;
	default:
		errno = EPROTO;
		return -1;
	}
}

ssize_t
tls_read(struct tls_session *session, void *out, size_t size)
{
	size_t got;
	int rc;

	ERR_clear_error();
	errno = 0;
	rc = SSL_read_ex(session->ssl, out, size, &got);
	if (rc == 1) {
		session->wants_write = false;
		return (ssize_t)got;
	}
	return tls_result(session, rc);
}

ssize_t
tls_write(struct tls_session *session, const void *data, size_t size)
{
	size_t done;
	int rc;

	if (size == 0)
		return 0;
	ERR_clear_error();
	errno = 0;
	rc = SSL_write_ex(session->ssl, data, size, &done);
	if (rc == 1)
		return (ssize_t)done;
	rc = (int)tls_result(session, rc);
	if (rc == 0)
		errno = EPIPE;
	return -1;
}

const char *
tls_reason(const struct tls_session *session)
{
	return session->reason;
}

bool
tls_wants_write(const struct tls_session *session)
{
	return session->wants_write;
}

const char *
tls_cipher(const struct tls_session *session)
{
	const SSL_CIPHER *cipher = SSL_get_current_cipher(session->ssl);

	return cipher == NULL ? NULL : SSL_CIPHER_standard_name(cipher);
}

const char *
tls_protocol(const struct tls_session *session)
{
	return SSL_is_init_finished(session->ssl) ? SSL_get_version(session->ssl) : NULL;
}
