/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "base/log.h"
#include "server/config.h"

/* The configuration that `option` gives on top of the defaults; the error's text in err. */
static int
finish(const char *option, struct error *err)
{
	struct config config;
	int rc;

	config_init(&config);
	rc = option == NULL ? 0 : config_set_option(&config, option, err);
	if (rc == 0)
		rc = config_finish(&config, err);
	if (rc == 0)
		rc = config_check_support(&config, err);
	config_fini(&config);
	return rc;
}

static const char *const refused[] = {
    "authenticator=PasswordAuthenticator",
    "authenticator=org.apache.cassandra.auth.PasswordAuthenticator",
    "authorizer=CassandraAuthorizer",
    "network_authorizer=CassandraNetworkAuthorizer",
    "audit_logging_options.enabled=true",
    "transparent_data_encryption_options.enabled=true",
    "cdc_enabled=true",
    "server_encryption_options.legacy_ssl_storage_port_enabled=true",
    "internode_authenticator=MutualTlsInternodeAuthenticator",
    "endpoint_snitch=Ec2Snitch",
    "endpoint_snitch=NoSuchSnitch",
    "initial_token=17,x",
    "initial_token=17,17",
};

START_TEST(test_what_somebody_would_rely_on_is_refused_by_name)
{
	struct error err;
	const char *option = refused[_i];
	size_t length = strcspn(option, "=");

	ck_assert_int_eq(finish(option, &err), -1);
	ck_assert_int_eq(err.code, ERROR_CONFIG);
	ck_assert_msg(strncmp(err.text, option, length) == 0, "%s", err.text);
}
END_TEST

static const char *const taken[] = {
    NULL, "authenticator=AllowAllAuthenticator",
    "authenticator=org.apache.cassandra.auth.AllowAllAuthenticator",
    "server_encryption_options.internode_encryption=all", "internode_compression=all",
    "disk_failure_policy=ignore", "seeds=127.0.0.1:7000", "seeds=10.1.2.3,127.0.0.1",
    "seeds=10.1.2.3", "initial_token=17", "initial_token=-5,17",
    "endpoint_snitch=RackInferringSnitch", "phi_convict_threshold=12",
    "permissions_validity=3s", /* no effect: a warning */
};

START_TEST(test_defaults_and_what_only_tunes_are_taken)
{
	struct error err;
	int rc;

	log_set_level("ROOT", LOG_OFF);
	rc = finish(taken[_i], &err);
	ck_assert_msg(rc == 0, "%s", rc == 0 ? "" : err.text);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("config_support");
	TCase *tcase = tcase_create("config_support");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tcase, test_what_somebody_would_rely_on_is_refused_by_name, 0,
	    sizeof(refused) / sizeof(refused[0]));
	tcase_add_loop_test(tcase, test_defaults_and_what_only_tunes_are_taken, 0,
	    sizeof(taken) / sizeof(taken[0]));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
