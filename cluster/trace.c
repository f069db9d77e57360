/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/trace.h"
#include <stdarg.h>
#include <stdio.h>
#include "cluster/cluster_env.h"

enum { TRACE_TEXT_MAX = 1024 };

void
trace_event(struct cluster_env *env, const struct trace *trace, struct worker *worker,
    const char *format, ...)
{
	char text[TRACE_TEXT_MAX];
	va_list arguments;

	if (!trace_is_on(trace) || env->trace == NULL)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	env->trace(env->trace_context, trace, worker, text);
}
