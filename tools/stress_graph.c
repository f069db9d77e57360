/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_graph.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/alloc.h"
#include "tools/stress_report.h"

#define STRESS_STATS_START "/* stats start */\nstats = "
#define STRESS_STATS_END ";\n/* stats end */\n"

/* The page around the data: a choice of figure, a line for each run, and a table of results. */
static const char stress_page_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
    "charset=\"utf-8\"><title>stress</title>\n<style>\n"
    "body{font:14px sans-serif;margin:24px;color:#222}svg{border:1px solid #ccc;background:#fff}\n"
    "select{font-size:14px;margin:0 16px 8px "
    "0}.grid{stroke:#e5e5e5}.axis{fill:#666;font-size:11px}\n"
    "table{border-collapse:collapse;margin-top:16px}td,th{border:1px solid #ddd;padding:3px 8px;"
    "text-align:right}th{background:#f5f5f5}td:first-child,th:first-child{text-align:left}\n"
    "label{margin-right:12px}.swatch{display:inline-block;width:12px;height:12px;margin-right:4px}"
    "\n"
    "</style></head><body>\n<h2 id=\"title\"></h2>\n"
    "<select id=\"metric\"></select><select id=\"test\"></select><span id=\"legend\"></span>\n"
    "<div><svg id=\"chart\" width=\"1000\" height=\"420\"></svg></div><table "
    "id=\"results\"></table>\n"
    "<script>\nvar stats;\n";

static const char stress_page_tail[] =
    "(function(){\n"
    "var colors=['#1f77b4','#d62728','#2ca02c','#ff7f0e','#9467bd','#8c564b','#e377c2','#7f7f7f',"
    "'#bcbd22','#17becf'];\n"
    "var get=function(id){return document.getElementById(id)};\n"
    "var hidden={};\n"
    "get('title').textContent=stats.title;document.title=stats.title;\n"
    "var names=stats.stats.length?stats.stats[0].metrics:[];\n"
    "names.forEach(function(name,i){if(i>0&&name!='time'&&i<14){var "
    "o=document.createElement('option');"
    "o.value=i;o.textContent=name;get('metric').appendChild(o)}});\n"
    "get('metric').value=2;\n"
    "var "
    "tests=[];stats.stats.forEach(function(s){if(tests.indexOf(s.test)<0)tests.push(s.test)});\n"
    "tests.forEach(function(t){var o=document.createElement('option');o.value=o.textContent=t;"
    "get('test').appendChild(o)});\n"
    "function element(name,attributes,text){var e=document.createElementNS("
    "'http://www.w3.org/2000/svg',name);for(var k in attributes)e.setAttribute(k,attributes[k]);"
    "if(text!=null)e.textContent=text;get('chart').appendChild(e);return e}\n"
    "function step(max,parts){var raw=max/parts||1,power=Math.pow(10,Math.floor(Math.log10(raw)));"
    "return [1,2,5,10].map(function(f){return f*power}).find(function(s){return s>=raw})||raw}\n"
    "function draw(){\n"
    "var metric=+get('metric').value,test=get('test').value,time=names.indexOf('time');\n"
    "var chart=get('chart');while(chart.firstChild)chart.removeChild(chart.firstChild);\n"
    "var runs=stats.stats.filter(function(s){return s.test==test});\n"
    "var left=80,top=16,width=890,height=360,maxX=1,maxY=0;\n"
    "var legend=get('legend');legend.innerHTML='';\n"
    "runs.forEach(function(run,i){var "
    "label=document.createElement('label'),box=document.createElement("
    "'input'),swatch=document.createElement('span');box.type='checkbox';box.checked=!hidden[i];"
    "box.onchange=function(){hidden[i]=!box.checked;draw()};swatch.className='swatch';"
    "swatch.style.background=colors[i%colors.length];label.appendChild(box);label.appendChild("
    "swatch);"
    "label.appendChild(document.createTextNode(run.revision));legend.appendChild(label);\n"
    "if(!hidden[i])run.intervals.forEach(function(r){maxX=Math.max(maxX,r[time]);"
    "maxY=Math.max(maxY,r[metric])})});\n"
    "var stepY=step(maxY,6),stepX=step(maxX,10);maxY=Math.ceil(maxY/stepY)*stepY||1;\n"
    "var px=function(x){return left+x/maxX*width},py=function(y){return "
    "top+height-y/maxY*height};\n"
    "for(var y=0;y<=maxY+stepY/2;y+=stepY){element('line',{x1:left,x2:left+width,y1:py(y),y2:py(y),"
    "'class':'grid'});element('text',{x:left-6,y:py(y)+4,'text-anchor':'end','class':'axis'},"
    "(+y.toPrecision(6)).toLocaleString('en'))}\n"
    "for(var x=0;x<=maxX;x+=stepX)element('text',{x:px(x),y:top+height+18,'text-anchor':'middle',"
    "'class':'axis'},+x.toPrecision(6)+' s');\n"
    "element('text',{x:left,y:top-4,'class':'axis'},names[metric]);\n"
    "runs.forEach(function(run,i){if(hidden[i])return;var points=run.intervals.filter(function(r){"
    "return r[metric]!=null&&r[time]!=null}).map(function(r){return "
    "px(r[time])+','+py(r[metric])});\n"
    "element('polyline',{points:points.join(' '),fill:'none',stroke:colors[i%colors.length],"
    "'stroke-width':2});\n"
    "run.intervals.forEach(function(r){if(r[metric]==null)return;var "
    "c=element('circle',{cx:px(r[time]),"
    "cy:py(r[metric]),r:3,fill:colors[i%colors.length]});var t=document.createElementNS("
    "'http://www.w3.org/2000/svg','title');t.textContent=run.revision+'\\n'+names[metric]+' "
    "'+r[metric]"
    "+' at '+r[time]+' s';c.appendChild(t)})});\n"
    "var table=get('results');table.innerHTML='';var keys=[];runs.forEach(function(run){"
    "Object.keys(run).forEach(function(k){if(['metrics','intervals','test','revision','command']"
    ".indexOf(k)<0&&keys.indexOf(k)<0)keys.push(k)})});\n"
    "function row(cells,tag){var tr=document.createElement('tr');cells.forEach(function(c){"
    "var e=document.createElement(tag);e.textContent=c==null?'':c;tr.appendChild(e)});"
    "table.appendChild(tr)}\n"
    "row([''].concat(runs.map(function(r){return r.revision})),'th');\n"
    "keys.concat(['command']).forEach(function(k){row([k].concat(runs.map(function(r){return "
    "r[k]})),"
    "'td')})}\n"
    "get('metric').onchange=get('test').onchange=draw;draw()})();\n"
    "</script></body></html>\n";

/* ---- Out of the report ------------------------------------------------------------------------------------- */

struct stress_graph_state {
	const struct stress_settings *settings;
	const char *command;
	json_t *stats;
	json_t *run; /* owned */
	json_t *intervals; /* owned */
	bool is_ladder;
	char threads[16];
	enum {
		STRESS_GRAPH_START,
		STRESS_GRAPH_METRICS,
		STRESS_GRAPH_RESULTS,
	} mode;
};

static void
stress_graph_take_row(struct stress_graph_state *state, char *line)
{
	json_t *row = json_array();
	char *rest = NULL, *end;
	int count = 0;

	for (char *part = strtok_r(line, ",", &rest); part != NULL;
	     part = strtok_r(NULL, ",", &rest)) {
		double number = strtod(part, &end);

		while (isspace((unsigned char)*end))
			end++;
		/* The kind of operation, and what is not finite, have no number. */
		json_array_append_new(row,
		    *end == '\0' && end != part && number - number == 0 ? json_real(number)
									: json_null());
		count++;
	}
	if (count == STRESS_COLUMN_NAMES)
		json_array_append(state->intervals, row);
	json_decref(row);
}

static void
stress_graph_take_result(struct stress_graph_state *state, char *line)
{
	char *colon = strchr(line, ':'), *end;

	if (colon == NULL)
		return;
	*colon++ = '\0';
	end = line + strlen(line);
	while (end > line && isspace((unsigned char)end[-1]))
		*--end = '\0';
	while (isspace((unsigned char)*colon))
		colon++;
	/* The page expects lower-case names. */
	for (char *c = line; *c != '\0'; c++)
		*c = (char)tolower((unsigned char)*c);
	json_object_set_new(state->run, line, json_string(colon));
}

static void
stress_graph_end_run(struct stress_graph_state *state)
{
	const struct stress_settings *settings = state->settings;
	const char *operation = settings->graph_operation != NULL
	    ? settings->graph_operation
	    : stress_command_name(settings->command);
	json_t *names = json_array();
	char revision[512];

	for (int i = 0; i < STRESS_COLUMN_NAMES; i++)
		json_array_append_new(names, json_string(stress_report_columns[i]));
	snprintf(revision, sizeof(revision), state->is_ladder ? "%s - %s threads" : "%s",
	    settings->graph_revision, state->threads);
	json_object_set_new(state->run, "metrics", names);
	json_object_set_new(state->run, "test", json_string(operation));
	json_object_set_new(state->run, "revision", json_string(revision));
	json_object_set_new(state->run, "command", json_string(state->command));
	json_object_set(state->run, "intervals", state->intervals);
	json_array_append(state->stats, state->run);
	json_decref(state->run);
	json_decref(state->intervals);
	state->run = json_object();
	state->intervals = json_array();
	state->mode = STRESS_GRAPH_START;
}

static void
stress_graph_take_line(struct stress_graph_state *state, char *line, const char *header)
{
	const char *with;

	if (strncmp(line, "Thread count was not specified", 30) == 0)
		state->is_ladder = true;
	with = strncmp(line, "Running ", 8) == 0 ? strstr(line, " with ") : NULL;
	if (with != NULL)
		snprintf(state->threads, sizeof(state->threads), "%.*s",
		    (int)strspn(with + 6, "0123456789"), with + 6);
	if (strcmp(line, header) == 0)
		state->mode = STRESS_GRAPH_METRICS;
	else if (strcmp(line, "Results:") == 0)
		state->mode = STRESS_GRAPH_RESULTS;
	else if (state->mode == STRESS_GRAPH_RESULTS && *line == '\0')
		stress_graph_end_run(state);
	else if (state->mode == STRESS_GRAPH_METRICS && strncmp(line, "total,", 6) == 0)
		stress_graph_take_row(state, line); /* rows of single operations would zigzag */
	else if (state->mode == STRESS_GRAPH_RESULTS)
		stress_graph_take_result(state, line);
}

static void
stress_graph_take_report(struct stress_graph_state *state, struct slice report)
{
	char *text = xstrndup((const char *)report.data, report.size), *line = text, *end;
	struct buffer header;

	buffer_init(&header);
	stress_report_header(&header);
	buffer_put_u8(&header, 0);
	while ((end = strchr(line, '\n')) != NULL) {
		*end = '\0';
		/* After it there is only the table of all runs. */
		if (strcmp(line, "END") == 0)
			break;
		stress_graph_take_line(state, line, (const char *)header.data);
		line = end + 1;
	}
	buffer_fini(&header);
	free(text);
}

int
stress_graph_add(const struct stress_settings *settings, const char *command, struct slice report,
    struct slice old, struct buffer *json, struct error *err)
{
	struct stress_graph_state state = {.settings = settings,
	    .command = command,
	    .run = json_object(),
	    .intervals = json_array()};
	char date[64], title[96];
	time_t now = time(NULL);
	struct tm calendar;
	json_t *all = NULL;
	char *text;

	if (!slice_is_null(old))
		all = json_loadb((const char *)old.data, old.size, 0, NULL);
	if (!slice_is_null(old) && !json_is_array(json_object_get(all, "stats"))) {
		json_decref(all);
		json_decref(state.run);
		json_decref(state.intervals);
		return error_set(err, ERROR_CORRUPT, "its data cannot be read");
	}
	if (all == NULL) {
		all = json_object();
		json_object_set_new(all, "stats", json_array());
	}
	state.stats = json_object_get(all, "stats");
	stress_graph_take_report(&state, report);
	localtime_r(&now, &calendar);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &calendar);
	snprintf(title, sizeof(title), "helenus-stress - %s", date);
	json_object_set_new(all, "title",
	    json_string(settings->graph_title != NULL ? settings->graph_title : title));
	text = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(10));
	/* A tag in a text must not end the script. */
	for (const char *c = text; *c != '\0'; c++) {
		if (*c == '<')
			buffer_put_string(json, "\\u003c");
		else
			buffer_put_u8(json, (uint8_t)*c);
	}
	free(text);
	json_decref(all);
	json_decref(state.run);
	json_decref(state.intervals);
	return 0;
}

/* ---- The page ------------------------------------------------------------------------------------------------ */

static int
stress_graph_read(const char *path, struct buffer *out, struct error *err)
{
	FILE *file = fopen(path, "rb");
	uint8_t piece[65536];
	size_t size;

	if (file == NULL)
		return errno == ENOENT ? 0 : error_set_errno(err, errno, "%s", path);
	while ((size = fread(piece, 1, sizeof(piece), file)) > 0)
		buffer_put(out, piece, size);
	fclose(file);
	return 0;
}

/* The data of a page that exists; null slice: there is no page yet. */
static int
stress_graph_find_data(const char *path, struct slice page, struct slice *data, struct error *err)
{
	const char *start, *end;

	*data = slice_null;
	if (page.size == 0)
		return 0;
	start = memmem(page.data, page.size, STRESS_STATS_START, strlen(STRESS_STATS_START));
	if (start != NULL) {
		start += strlen(STRESS_STATS_START);
		end = memmem(start, (size_t)((const char *)page.data + page.size - start),
		    STRESS_STATS_END, strlen(STRESS_STATS_END));
		if (end != NULL) {
			*data = slice_of(start, (size_t)(end - start));
			return 0;
		}
	}
	return error_set(err, ERROR_CORRUPT, "%s exists and is no page of this tool", path);
}

static void
stress_graph_put_command(int argc, char *const *argv, struct buffer *out)
{
	for (int i = 1; i < argc; i++) {
		buffer_put_string(out, i > 1 ? " " : "");
		buffer_put_string(
		    out, strncmp(argv[i], "password=", 9) == 0 ? "password=*******" : argv[i]);
	}
	buffer_put_u8(out, 0);
}

int
stress_graph_write(const struct stress_settings *settings, int argc, char *const *argv,
    struct slice report, struct error *err)
{
	struct buffer page, command, json;
	struct slice old;
	FILE *file = NULL;
	int rc;

	buffer_init(&page);
	buffer_init(&command);
	buffer_init(&json);
	stress_graph_put_command(argc, argv, &command);
	rc = stress_graph_read(settings->graph_file, &page, err);
	if (rc == 0)
		rc = stress_graph_find_data(settings->graph_file, buffer_slice(&page), &old, err);
	if (rc == 0)
		rc =
		    stress_graph_add(settings, (const char *)command.data, report, old, &json, err);
	if (rc == 0) {
		file = fopen(settings->graph_file, "wb");
		if (file == NULL)
			rc = error_set_errno(err, errno, "%s", settings->graph_file);
	}
	if (file != NULL) {
		fputs(stress_page_head, file);
		fputs(STRESS_STATS_START, file);
		fwrite(json.data, 1, json.size, file);
		fputs(STRESS_STATS_END, file);
		fputs(stress_page_tail, file);
		if (fclose(file) != 0)
			rc = error_set_errno(err, errno, "%s", settings->graph_file);
	}
	buffer_fini(&page);
	buffer_fini(&command);
	buffer_fini(&json);
	return rc;
}
