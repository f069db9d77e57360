/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_TLS_H
#define HELENUS_SERVER_TLS_H

/*
 * TLS of client connections (client_encryption_options) and between nodes (server_encryption_options). Certificates are
 * PEM: keystore holds the node's certificate chain and key, truststore the authorities, or the parameters
 * of PEMBasedSslContextFactory hold the texts themselves. OpenSSL is driven on the connection's own
 * non-blocking socket rather than through a bufferevent, so that the bounds on input and output are the
 * same with and without TLS.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "base/error.h"

struct config;
struct config_list;
struct tls_context; /* shared; certificates */
struct tls_session; /* one connection's */

/* One section of the configuration; all borrowed. */
struct tls_options {
	const char *section; /* its name, for errors */
	const char *keystore, *keystore_password, *truststore;
	const char *private_key, *private_key_password,
	    *trusted_certificates; /* texts; NULL: files */
	const char *require_client_auth; /* "true", "optional", else no */
	bool connects; /* this side connects too, and verifies whom it reaches */
	bool
	    require_endpoint_verification; /* the certificate names the address of the other side */
	const struct config_list *cipher_suites, *accepted_protocols;
};
void tls_client_options(const struct config *config, struct tls_options *out);
void tls_internode_options(const struct config *config, struct tls_options *out);

/* ERROR_CONFIG names the file and what is wrong with it. The options may go afterwards. */
int tls_context_new(const struct tls_options *options, struct tls_context **out, struct error *err);
struct tls_context *tls_context_ref(struct tls_context *context);
void tls_context_unref(struct tls_context *context);

/*
 * The side that accepts, and the one that connects. `address` is the other side's, numeric, for endpoint
 * verification. Take a reference of the context. NULL without memory.
 */
struct tls_session *tls_session_accept(struct tls_context *context, int fd, const char *address);
struct tls_session *tls_session_connect(struct tls_context *context, int fd, const char *address);
void tls_session_free(struct tls_session *session);

/* As recv() and send() on a non-blocking socket: bytes, 0 at the end, -1 with errno; EAGAIN sets
 * what it waits for. Other failures of TLS give EPROTO. */
ssize_t tls_read(struct tls_session *session, void *out, size_t size);
ssize_t tls_write(struct tls_session *session, const void *data, size_t size);
/* What the last EPROTO was about; valid until the next call. */
const char *tls_reason(const struct tls_session *session);
/* The last EAGAIN of a read waits for the socket to be writable (a renegotiation or the handshake). */
bool tls_wants_write(const struct tls_session *session);
/* Static or session-owned strings; NULL before the handshake is done. */
const char *tls_cipher(const struct tls_session *session);
const char *tls_protocol(const struct tls_session *session);

#endif
