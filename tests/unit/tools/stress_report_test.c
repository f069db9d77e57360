/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_report.h"

#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "tools/stress_action.h"
#include "tools/stress_graph.h"
#include "tools/stress_hdr.h"

static struct stress_timing *
timing_of(int count, int64_t first_ns, int64_t step_ns)
{
	struct stress_timing *timing = xzalloc(sizeof(*timing));

	stress_timing_clear(timing);
	for (int i = 0; i < count; i++)
		stress_histogram_add(&timing->service, first_ns + i * step_ns);
	timing->rows = timing->partitions = (uint64_t)count;
	timing->start_ns = 5000000000;
	timing->end_ns = 7000000000;
	return timing;
}

START_TEST(test_header_is_the_one_that_scripts_look_for)
{
	struct buffer line;

	buffer_init(&line);
	stress_report_header(&line);
	buffer_put_u8(&line, 0);
	ck_assert_str_eq((char *)line.data,
	    "type       total ops,    op/s,    pk/s,   row/s,    mean,     med,     .95,     .99,  "
	    "  .999,"
	    "     max,   time,   stderr, errors,  gc: #,  max ms,  sum ms,  sdv ms,      mb");
	buffer_fini(&line);
}
END_TEST

START_TEST(test_row_has_the_widths_of_cassandra_stress)
{
	struct stress_timing *timing = timing_of(1000, 1000000, 1000);
	struct stress_uncertainty uncertainty = {.value = 0.25};
	struct buffer line;

	buffer_init(&line);
	timing->errors = 3;
	stress_report_row(&line, "total", timing, timing, &uncertainty);
	buffer_put_u8(&line, 0);
	ck_assert_str_eq((char *)line.data,
	    "total,          1000,     500,     500,     500,     1.5,     1.5,     1.9,     2.0,  "
	    "   2.0,"
	    "     2.0,    2.0,  0.25000,      3,      0,       0,       0,       0,       0");
	buffer_fini(&line);
	free(timing);
}
END_TEST

START_TEST(test_what_is_no_number_is_printed_as_java_does)
{
	struct stress_timing *timing = timing_of(1, 1000000, 0);
	struct stress_uncertainty uncertainty = {.value = NAN};
	struct buffer line;

	buffer_init(&line);
	timing->end_ns = timing->start_ns;
	stress_report_row(&line, "a name of more than ten", timing, timing, &uncertainty);
	buffer_put_u8(&line, 0);
	ck_assert_ptr_nonnull(
	    strstr((char *)line.data, "a name of more than ten,         1,Infinity,"));
	ck_assert_ptr_nonnull(strstr((char *)line.data, ",      NaN,"));
	buffer_fini(&line);
	free(timing);
}
END_TEST

START_TEST(test_results_block)
{
	struct stress_timing *timing = timing_of(3000000, 1500000, 0);
	struct stress_report_type types[] = {{"READ", timing}, {"WRITE", timing}};
	struct buffer text;

	buffer_init(&text);
	timing->end_ns = timing->start_ns + 3723 * 1000000000LL;
	stress_report_results(&text, timing, types, 2);
	buffer_put_u8(&text, 0);
	ck_assert_str_eq((char *)text.data,
	    "\n\nResults:\n"
	    "Op rate                   :      806 op/s  [READ: 806 op/s, WRITE: 806 op/s]\n"
	    "Partition rate            :      806 pk/s  [READ: 806 pk/s, WRITE: 806 pk/s]\n"
	    "Row rate                  :      806 row/s [READ: 806 row/s, WRITE: 806 row/s]\n"
	    "Latency mean              :    1.5 ms [READ: 1.5 ms, WRITE: 1.5 ms]\n"
	    "Latency median            :    1.5 ms [READ: 1.5 ms, WRITE: 1.5 ms]\n"
	    "Latency 95th percentile   :    1.5 ms [READ: 1.5 ms, WRITE: 1.5 ms]\n"
	    "Latency 99th percentile   :    1.5 ms [READ: 1.5 ms, WRITE: 1.5 ms]\n"
	    "Latency 99.9th percentile :    1.5 ms [READ: 1.5 ms, WRITE: 1.5 ms]\n"
	    "Latency max               :    1.5 ms [READ: 1.5 ms, WRITE: 1.5 ms]\n"
	    "Total partitions          :  3,000,000 [READ: 3,000,000, WRITE: 3,000,000]\n"
	    "Total errors              :          0 [READ: 0, WRITE: 0]\n"
	    "Total GC count            : 0\n"
	    "Total GC memory           : 0.000 KiB\n"
	    "Total GC time             :    0.0 seconds\n"
	    "Avg GC time               :    NaN ms\n"
	    "StdDev GC time            :    0.0 ms\n"
	    "Total operation time      : 01:02:03\n\n");
	buffer_fini(&text);
	free(timing);
}
END_TEST

START_TEST(test_numbers_have_thousands_apart)
{
	static const struct {
		double value;
		int decimals;
		const char *text;
	} cases[] = {{0, 0, "0"}, {999, 0, "999"}, {1000, 0, "1,000"},
	    {1234567.25, 1, "1,234,567.2"}, {-1234, 0, "-1,234"}, {-123, 0, "-123"},
	    {NAN, 0, "NaN"}, {INFINITY, 0, "Infinity"}};
	struct buffer text;

	buffer_init(&text);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buffer_clear(&text);
		stress_report_number(&text, cases[i].value, 0, cases[i].decimals);
		buffer_put_u8(&text, 0);
		ck_assert_str_eq((char *)text.data, cases[i].text);
	}
	buffer_fini(&text);
}
END_TEST

START_TEST(test_percentiles_keep_three_digits)
{
	struct stress_histogram *histogram = xzalloc(sizeof(*histogram));
	struct stress_histogram *sum = xzalloc(sizeof(*sum));

	for (int64_t i = 1; i <= 1000000; i++)
		stress_histogram_add(histogram, i * 1000);
	stress_histogram_merge(sum, histogram);
	stress_histogram_merge(sum, histogram);
	ck_assert_uint_eq(sum->total, 2000000);
	for (int i = 1; i <= 99; i++) {
		double got = (double)stress_histogram_percentile(sum, i);

		ck_assert_msg(fabs(got / (i * 1e7) - 1) < 0.001, "%d%%: %f", i, got);
	}
	ck_assert(fabs(stress_histogram_mean(sum) / 5.000005e8 - 1) < 0.001);
	ck_assert_uint_ge(stress_histogram_max(sum), 1000000000);
	/* Beyond the range, and before it. */
	stress_histogram_add(sum, INT64_MAX);
	stress_histogram_add(sum, -5);
	ck_assert_uint_eq(stress_histogram_percentile(sum, 0), 0);
	stress_histogram_clear(sum);
	ck_assert_uint_eq(stress_histogram_percentile(sum, 50), 0);
	for (int i = 0; i < STRESS_HISTOGRAM_COUNTS; i++)
		ck_assert_uint_eq(sum->counts[i], 0);
	free(histogram);
	free(sum);
}
END_TEST

START_TEST(test_latency_counts_from_when_it_was_due_where_the_rate_is_fixed)
{
	struct stress_timing *timing = timing_of(10, 1000000, 0);

	for (int i = 0; i < 5; i++)
		stress_histogram_add(&timing->response, 9000000);
	ck_assert_uint_eq(stress_timing_count(timing), 10);
	timing->is_fixed = true;
	ck_assert_uint_eq(stress_timing_count(timing), 5);
	free(timing);
}
END_TEST

START_TEST(test_ladder_climbs_by_doubles_then_by_halves)
{
	static const int steps[] = {4, 8, 16, 24, 36, 54, 81, 121, 181, 271, 406, 609, 913};

	for (size_t i = 0; i + 1 < sizeof(steps) / sizeof(steps[0]); i++)
		ck_assert_int_eq(stress_ladder_next(steps[i]), steps[i + 1]);
	ck_assert_int_eq(stress_ladder_next(INT32_MAX), INT32_MAX);
}
END_TEST

START_TEST(test_ladder_ends_when_more_threads_do_not_help)
{
	double rates[] = {100, 200, 300, 310, 305, 300, 290};

	ck_assert(stress_ladder_improves(rates, 1, -1));
	ck_assert(stress_ladder_improves(rates, 5, -1));
	ck_assert(!stress_ladder_improves(rates, 7, -1));
	/* Five steps must bring what the uncertainty asks for. */
	ck_assert(!stress_ladder_improves((double[]){100, 101, 102, 103, 104, 105}, 6, 0.02));
	ck_assert(stress_ladder_improves((double[]){100, 110, 120, 130, 140, 150}, 6, 0.02));
}
END_TEST

START_TEST(test_uncertainty_of_equal_measurements_is_nothing)
{
	struct stress_uncertainty uncertainty = {.measurements = 0};

	for (int i = 0; i < 10; i++)
		stress_uncertainty_update(&uncertainty, 1000);
	ck_assert_double_eq(uncertainty.value, 0);
	stress_uncertainty_update(&uncertainty, 3000);
	ck_assert(uncertainty.value > 0.1 && uncertainty.value < 0.2);
}
END_TEST

static const char report[] =
    "Running READ with 4 threads for 10 iteration\n"
    "type       total ops,    op/s,    pk/s,   row/s,    mean,     med,     .95,     .99,    .999, "
    "    "
    "max,   time,   stderr, errors,  gc: #,  max ms,  sum ms,  sdv ms,      mb\n"
    "total,          1000,     500,     500,     500,     1.5,     1.5,     1.9,     2.0,     2.0, "
    "    "
    "2.0,    2.0,      NaN,      3,      0,       0,       0,       0,       0\n"
    "\n\nResults:\n"
    "Op rate                   :      806 op/s  [READ: 806 op/s]\n"
    "Total operation time      : 01:02:03\n\nEND\n";

START_TEST(test_graph_data_grows_with_each_run)
{
	struct stress_settings settings = {
	    .command = STRESS_READ, .graph_revision = "r1", .graph_title = "</script>"};
	struct buffer first, second;
	struct error err;
	json_t *all, *run;

	buffer_init(&first);
	buffer_init(&second);
	ck_assert_int_eq(stress_graph_add(&settings, "read n=10", slice_of_string(report),
			     slice_null, &first, &err),
	    0);
	settings.graph_revision = "r2";
	ck_assert_int_eq(stress_graph_add(&settings, "read n=10", slice_of_string(report),
			     buffer_slice(&first), &second, &err),
	    0);
	ck_assert_ptr_null(memmem(second.data, second.size, "</script>", 9));
	all = json_loadb((char *)second.data, second.size, 0, NULL);
	ck_assert_uint_eq(json_array_size(json_object_get(all, "stats")), 2);
	ck_assert_str_eq(json_string_value(json_object_get(all, "title")), "</script>");
	run = json_array_get(json_object_get(all, "stats"), 1);
	ck_assert_str_eq(json_string_value(json_object_get(run, "revision")), "r2");
	ck_assert_str_eq(json_string_value(json_object_get(run, "test")), "READ");
	ck_assert_str_eq(
	    json_string_value(json_object_get(run, "op rate")), "806 op/s  [READ: 806 op/s]");
	run = json_array_get(json_object_get(run, "intervals"), 0);
	ck_assert_uint_eq(json_array_size(run), STRESS_COLUMN_NAMES);
	ck_assert(json_is_null(json_array_get(run, 0)));
	ck_assert_double_eq(json_number_value(json_array_get(run, 1)), 1000);
	ck_assert(json_is_null(json_array_get(run, 12)));
	json_decref(all);
	ck_assert_int_eq(stress_graph_add(&settings, "", slice_of_string(report),
			     slice_of_string("{\"stats\": 5}"), &first, &err),
	    -1);
	buffer_fini(&first);
	buffer_fini(&second);
}
END_TEST

START_TEST(test_histogram_is_encoded_as_its_format_says)
{
	struct stress_histogram *histogram = xzalloc(sizeof(*histogram));
	struct buffer out;

	buffer_init(&out);
	stress_histogram_add(histogram, 1);
	stress_histogram_add(histogram, 3);
	stress_histogram_add(histogram, 3);
	stress_histogram_add(histogram, 5000);
	stress_hdr_encode(histogram, &out);
	ck_assert_uint_eq(load_u32(out.data), 0x1c849313);
	ck_assert_uint_eq(load_u32(out.data + 4), out.size - 40);
	ck_assert_uint_eq(load_u32(out.data + 12), 3);
	ck_assert_uint_eq(load_u64(out.data + 16), 1);
	/* A zero, one, a zero, two, zeros up to 5000's place, one. */
	ck_assert_uint_eq(out.data[40], 1);
	ck_assert_uint_eq(out.data[41], 2);
	ck_assert_uint_eq(out.data[42], 1);
	ck_assert_uint_eq(out.data[43], 4);
	ck_assert_uint_eq(out.data[44] | out.data[45] << 8,
	    ((2 * (stress_histogram_index(5000) - 4) - 1) & 0x7f) | 0x80 |
		((2 * (stress_histogram_index(5000) - 4) - 1) >> 7) << 8);
	ck_assert_uint_eq(out.data[out.size - 1], 2);
	buffer_fini(&out);
	free(histogram);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("stress_report");
	TCase *tcase = tcase_create("stress_report");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, test_header_is_the_one_that_scripts_look_for);
	tcase_add_test(tcase, test_row_has_the_widths_of_cassandra_stress);
	tcase_add_test(tcase, test_what_is_no_number_is_printed_as_java_does);
	tcase_add_test(tcase, test_results_block);
	tcase_add_test(tcase, test_numbers_have_thousands_apart);
	tcase_add_test(tcase, test_percentiles_keep_three_digits);
	tcase_add_test(tcase, test_latency_counts_from_when_it_was_due_where_the_rate_is_fixed);
	tcase_add_test(tcase, test_ladder_climbs_by_doubles_then_by_halves);
	tcase_add_test(tcase, test_ladder_ends_when_more_threads_do_not_help);
	tcase_add_test(tcase, test_uncertainty_of_equal_measurements_is_nothing);
	tcase_add_test(tcase, test_graph_data_grows_with_each_run);
	tcase_add_test(tcase, test_histogram_is_encoded_as_its_format_says);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
