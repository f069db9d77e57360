/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "tools/nodetool.h"

void
nodetool_grid_init(struct nodetool_grid *grid, const char *separator, size_t columns)
{
	*grid = (struct nodetool_grid){.separator = separator, .columns = columns};
}

void
nodetool_grid_add(struct nodetool_grid *grid, const char *format, ...)
{
	va_list arguments;
	char text[512];

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	grid->cells = xrealloc(grid->cells, (grid->cell_count + 1) * sizeof(*grid->cells));
	grid->cells[grid->cell_count++] = xstrdup(text);
}

/* As Cassandra's TableBuilder: every cell padded, the last of a row too. */
void
nodetool_grid_print(struct nodetool_grid *grid)
{
	size_t *widths = xcalloc(grid->columns, sizeof(*widths));

	for (size_t i = 0; i < grid->cell_count; i++) {
		size_t length = strlen(grid->cells[i]);

		if (length > widths[i % grid->columns])
			widths[i % grid->columns] = length;
	}
	for (size_t i = 0; i < grid->cell_count; i++) {
		size_t column = i % grid->columns;

		printf("%-*s%s", (int)widths[column], grid->cells[i],
		    column + 1 == grid->columns ? "\n" : grid->separator);
	}
	free(widths);
	nodetool_grid_fini(grid);
}

void
nodetool_grid_fini(struct nodetool_grid *grid)
{
	for (size_t i = 0; i < grid->cell_count; i++)
		free(grid->cells[i]);
	free(grid->cells);
	grid->cells = NULL;
	grid->cell_count = 0;
}

/* One of a ring of texts, so that several may stand in one printf. */
static char *
nodetool_scratch(void)
{
	static char texts[8][64];
	static unsigned next;

	return texts[next++ % 8];
}

const char *
nodetool_size(uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	char *text = nodetool_scratch();
	double value = (double)bytes;
	int unit = -1;

	while (value >= 1024 && unit < 3) {
		value /= 1024;
		unit++;
	}
	if (unit < 0)
		snprintf(text, 64, "%" PRIu64 " bytes", bytes);
	else {
		snprintf(text, 48, "%.2f", value);
		/* DecimalFormat("#.##"): no zeros at the end */
		for (size_t end = strlen(text); text[end - 1] == '0' || text[end - 1] == '.';
		     end--) {
			bool is_point = text[end - 1] == '.';

			text[end - 1] = '\0';
			if (is_point)
				break;
		}
		snprintf(text + strlen(text), 64 - strlen(text), " %s", units[unit]);
	}
	return text;
}

/* Double.toString(): the fewest digits that read back as the value. */
const char *
nodetool_double(double value)
{
	char *text = nodetool_scratch();
	bool is_plain = value == 0 || (fabs(value) >= 1e-3 && fabs(value) < 1e7);
	double mantissa = value;
	int exponent = 0;

	if (isnan(value))
		return "NaN";
	if (isinf(value))
		return value < 0 ? "-Infinity" : "Infinity";
	if (!is_plain) {
		exponent = (int)floor(log10(fabs(value)));
		mantissa = value / pow(10, exponent);
	}
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, 64, "%.*g", digits, mantissa);
		if (strtod(text, NULL) == mantissa && strchr(text, 'e') == NULL)
			break;
	}
	if (strchr(text, '.') == NULL)
		strcat(text, ".0");
	if (!is_plain)
		snprintf(text + strlen(text), 64 - strlen(text), "E%d", exponent);
	return text;
}

const char *
nodetool_time(int64_t ms, bool with_zone)
{
	char *text = nodetool_scratch();
	time_t seconds = (time_t)(ms / 1000);
	struct tm parts;
	size_t length;

	gmtime_r(&seconds, &parts);
	length = strftime(text, 48, "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(text + length, 64 - length, ".%03d%s", (int)(ms % 1000), with_zone ? "Z" : "");
	return text;
}

static void
nodetool_print_yaml(const json_t *json, int depth)
{
	const char *name;
	json_t *value;
	size_t index;

	json_object_foreach((json_t *)json, name, value)
	{
		printf("%*s%s:", depth * 2, "", name);
		if (json_is_object(value)) {
			printf("%s\n", json_object_size(value) == 0 ? " {}" : "");
			nodetool_print_yaml(value, depth + 1);
		} else if (json_is_array(value)) {
			json_t *item;

			printf(" [");
			json_array_foreach(value, index, item)
			{
				char *text = json_dumps(item, JSON_ENCODE_ANY);

				printf("%s%s", index == 0 ? "" : ", ", text);
				free(text);
			}
			printf("]\n");
		} else {
			char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

			printf(" %s\n", text);
			free(text);
		}
	}
}

void
nodetool_print_structured(const json_t *json, const char *format)
{
	if (strcmp(format, "yaml") == 0) {
		nodetool_print_yaml(json, 0);
	} else if (strcmp(format, "json") == 0) {
		json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
		putchar('\n');
	} else {
		nodetool_refuse("arguments for -F are yaml and json only.");
	}
}
