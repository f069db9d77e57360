/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include "base/alloc.h"
#include "tools/stress_hdr.h"

int
stress_metrics_init(struct stress_metrics *metrics, const struct stress_settings *settings,
    const struct stress_operation *operations, uint32_t count, struct error *err)
{
	memset(metrics, 0, sizeof(*metrics));
	metrics->operations = operations;
	metrics->count = count;
	metrics->sorted = xcalloc(count, sizeof(*metrics->sorted));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = i;

		for (; at > 0 &&
		     strcmp(operations[metrics->sorted[at - 1]].name, operations[i].name) > 0;
		     at--)
			metrics->sorted[at] = metrics->sorted[at - 1];
		metrics->sorted[at] = i;
	}
	metrics->current = xcalloc(count + 1, sizeof(*metrics->current));
	metrics->summary = xcalloc(count + 1, sizeof(*metrics->summary));
	for (uint32_t i = 0; i <= count; i++) {
		metrics->current[i].is_fixed = metrics->summary[i].is_fixed = settings->is_fixed;
		stress_timing_clear(&metrics->current[i]);
		stress_timing_clear(&metrics->summary[i]);
	}
	if (settings->hdr_file == NULL)
		return 0;
	metrics->hdr = fopen(settings->hdr_file, "w");
	if (metrics->hdr == NULL)
		return error_set_errno(err, errno, "%s", settings->hdr_file);
	metrics->hdr_epoch_ns = stress_hdr_begin(metrics->hdr);
	return 0;
}

void
stress_metrics_fini(struct stress_metrics *metrics)
{
	if (metrics->hdr != NULL)
		fclose(metrics->hdr);
	free(metrics->sorted);
	free(metrics->current);
	free(metrics->summary);
	memset(metrics, 0, sizeof(*metrics));
}

static void
stress_metrics_log(struct stress_metrics *metrics, uint32_t operation)
{
	const struct stress_timing *timing = &metrics->current[operation];
	const char *name = metrics->operations[operation].name;

	if (metrics->hdr == NULL)
		return;
	stress_hdr_put(metrics->hdr, name, "-st", &timing->service,
	    timing->start_ns - metrics->hdr_epoch_ns, timing->end_ns - metrics->hdr_epoch_ns);
	stress_hdr_put(metrics->hdr, name, "-rt", &timing->response,
	    timing->start_ns - metrics->hdr_epoch_ns, timing->end_ns - metrics->hdr_epoch_ns);
	stress_hdr_put(metrics->hdr, name, "-wt", &timing->wait,
	    timing->start_ns - metrics->hdr_epoch_ns, timing->end_ns - metrics->hdr_epoch_ns);
}

static void
stress_metrics_print_interval(struct stress_metrics *metrics, struct stress_output *output)
{
	const struct stress_timing *total = &metrics->current[metrics->count];
	struct buffer line;

	if (output == NULL || stress_timing_count(total) == 0)
		return;
	buffer_init(&line);
	for (uint32_t i = 0; metrics->count > 1 && i < metrics->count; i++) {
		uint32_t at = metrics->sorted[i];

		/* What was never run has no row. */
		if (stress_timing_count(&metrics->summary[at]) == 0)
			continue;
		stress_report_row(&line, metrics->operations[at].name, &metrics->current[at],
		    &metrics->summary[at], &metrics->uncertainty);
		buffer_put_string(&line, "\n");
	}
	stress_report_row(
	    &line, "total", total, &metrics->summary[metrics->count], &metrics->uncertainty);
	buffer_put_string(&line, "\n");
	stress_output_put(output, buffer_slice(&line));
	buffer_fini(&line);
}

void
stress_metrics_collect(struct stress_metrics *metrics, struct stress_worker *const *workers,
    uint32_t worker_count, int64_t start_ns, int64_t end_ns, struct stress_output *output)
{
	struct stress_timing *total = &metrics->current[metrics->count];

	for (uint32_t i = 0; i <= metrics->count; i++)
		stress_timing_clear(&metrics->current[i]);
	for (uint32_t i = 0; i < worker_count; i++) {
		struct stress_timing *taken = stress_worker_take(workers[i]);

		for (uint32_t j = 0; j < metrics->count; j++)
			stress_timing_merge(&metrics->current[j], &taken[j]);
	}
	for (uint32_t i = 0; i < metrics->count; i++) {
		metrics->current[i].start_ns = start_ns;
		metrics->current[i].end_ns = end_ns;
		stress_timing_merge(&metrics->summary[i], &metrics->current[i]);
		stress_timing_merge(total, &metrics->current[i]);
		if (output != NULL)
			stress_metrics_log(metrics, i);
	}
	stress_timing_merge(&metrics->summary[metrics->count], total);
	stress_uncertainty_update(&metrics->uncertainty, stress_timing_adjusted_rate(total));
	stress_metrics_print_interval(metrics, output);
}

void
stress_metrics_summarise(const struct stress_metrics *metrics, struct stress_output *output)
{
	struct stress_report_type types[STRESS_OPERATIONS_MAX];
	struct buffer text;
	size_t count = 0;

	for (uint32_t i = 0; i < metrics->count; i++) {
		uint32_t at = metrics->sorted[i];

		if (stress_timing_count(&metrics->summary[at]) > 0)
			types[count++] = (struct stress_report_type){
			    metrics->operations[at].name, &metrics->summary[at]};
	}
	buffer_init(&text);
	stress_report_results(&text, &metrics->summary[metrics->count], types, count);
	stress_output_put(output, buffer_slice(&text));
	buffer_fini(&text);
}

void
stress_metrics_put_rows(
    const struct stress_metrics *metrics, const char *id, int id_width, struct buffer *out)
{
	for (uint32_t i = 0; i <= metrics->count; i++) {
		uint32_t at = i < metrics->count ? metrics->sorted[i] : i;

		if (stress_timing_count(&metrics->summary[at]) == 0)
			continue;
		buffer_printf(out, "%*s, ", id_width, id);
		stress_report_row(out, i < metrics->count ? metrics->operations[at].name : "total",
		    &metrics->summary[at], &metrics->summary[at], &metrics->uncertainty);
		buffer_put_string(out, "\n");
	}
}

const struct stress_timing *
stress_metrics_total(const struct stress_metrics *metrics)
{
	return &metrics->summary[metrics->count];
}
