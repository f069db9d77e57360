/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "cql/type.h"

static struct arena arena;

static void
setup(void)
{
	arena_init(&arena, 4096);
}

static void
teardown(void)
{
	arena_fini(&arena);
}

static struct slice
hex(const char *text)
{
	uint8_t *out = arena_alloc_bytes(&arena, strlen(text) / 2 + 1);

	ck_assert_int_eq(hex_decode(text, strlen(text), out), 0);
	return slice_of(out, strlen(text) / 2);
}

static const struct type *
resolve(void *user, struct slice keyspace, struct slice name)
{
	struct slice fields[] = {slice_of_string("street"), slice_of_string("Zip")};
	const struct type *params[] = {type_native(TYPE_TEXT), type_native(TYPE_INT)};

	(void)user;
	(void)keyspace;
	if (!slice_equal_string(name, "address"))
		return NULL;
	return type_udt(&arena, slice_of_string("ks"), name, fields, params, 2, true);
}

static const struct type *
cql(const char *text)
{
	const struct type *type = NULL;
	struct error err;

	if (type_parse_cql(slice_of_string(text), resolve, NULL, &arena, &type, &err) != 0)
		ck_abort_msg("%s: %s", text, err.text);
	return type;
}

static const struct type *class(const char *text)
{
	const struct type *type = NULL;
	struct error err;

	if (type_parse_class(slice_of_string(text), &arena, &type, &err) != 0)
		ck_abort_msg("%s: %s", text, err.text);
	return type;
}

static const char *
class_text(const struct type *type)
{
	struct buffer buffer;
	char *text;

	buffer_init(&buffer);
	type_print_class(type, &buffer);
	text = arena_strndup(&arena, (const char *)buffer.data, buffer.size);
	buffer_fini(&buffer);
	return text;
}

START_TEST(test_cql_names_print_back)
{
	static const char *const names[][2] = {
	    {"int", "int"},
	    {"VARCHAR", "text"},
	    {"map<text, frozen<list<int>>>", "map<text, frozen<list<int>>>"},
	    {" frozen < list < set<int>>> ", "frozen<list<frozen<set<int>>>>"},
	    {"tuple<int,list<text>>", "frozen<tuple<int, frozen<list<text>>>>"},
	    {"list<tuple<int>>", "list<frozen<tuple<int>>>"},
	    {"address", "address"},
	    {"ks.\"address\"", "address"},
	    {"list<frozen<address>>", "list<frozen<address>>"},
	    {"vector<float, 3>", "vector<float, 3>"},
	    {"'Int32Type'", "int"},
	    {"'LexicalUUIDType'", "'org.apache.cassandra.db.marshal.LexicalUUIDType'"},
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_str_eq(type_name(&arena, cql(names[i][0])), names[i][1]);
}
END_TEST

START_TEST(test_cql_refuses_what_cassandra_refuses)
{
	static const char *const names[][2] = {
	    {"list<list<int>>",
		"Non-frozen collections are not allowed inside collections: list<list<int>>"},
	    {"set<address>", "Non-frozen UDTs are not allowed inside collections: set<address>"},
	    {"list<counter>", "Counters are not allowed inside collections: list<counter>"},
	    {"set<duration>", "Durations are not allowed inside sets: set<duration>"},
	    {"map<duration, int>", "Durations are not allowed as map keys: map<duration, int>"},
	    {"tuple<counter>", "Counters are not allowed inside tuples"},
	    {"foo", "Unknown type foo"},
	    {"ks.foo", "Unknown type ks.foo"},
	    {"frozen<int>",
		"frozen<> is only allowed on collections, tuples, and user-defined "
		"types (got int)"},
	};
	const struct type *type;
	struct error err;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ck_assert_int_eq(type_parse_cql(slice_of_string(names[i][0]), resolve, NULL, &arena,
				     &type, &err),
		    -1);
		ck_assert_str_eq(err.text, names[i][1]);
		ck_assert_int_eq(err.code, ERROR_INVALID);
	}
	ck_assert_int_eq(
	    type_parse_cql(slice_of_string("list<int"), NULL, NULL, &arena, &type, &err), -1);
	ck_assert_int_eq(err.code, ERROR_SYNTAX);
}
END_TEST

#define P "org.apache.cassandra.db.marshal."

START_TEST(test_class_names_print_back)
{
	static const char *const names[][2] = {
	    {"Int32Type", P "Int32Type"},
	    {"", P "BytesType"},
	    {"DateType", P "TimestampType"},
	    {"Int32Type(Int32Type)", P "Int32Type"},
	    {P "ReversedType(" P "Int32Type)", P "ReversedType(" P "Int32Type)"},
	    {"ListType(FrozenType(SetType(Int32Type)))",
		P "ListType(" P "FrozenType(" P "SetType(" P "Int32Type)))"},
	    {"FrozenType(ListType(ListType(Int32Type)))",
		P "FrozenType(" P "ListType(" P "ListType(" P "Int32Type)))"},
	    {"TupleType(ListType(Int32Type),UTF8Type)",
		P "TupleType(" P "ListType(" P "Int32Type)," P "UTF8Type)"},
	    {"UserType(ks,6162,61:Int32Type,62:UTF8Type)",
		P "UserType(ks,6162,61:" P "Int32Type,62:" P "UTF8Type)"},
	    {"FrozenType(UserType(ks,6162,61:Int32Type))",
		P "FrozenType(" P "UserType(ks,6162,61:" P "Int32Type))"},
	    {"CompositeType(Int32Type,UTF8Type)", P "CompositeType(" P "Int32Type," P "UTF8Type)"},
	    {"VectorType(FloatType , 3)", P "VectorType(" P "FloatType, 3)"},
	    {"DynamicCompositeType(a=>Int32Type)", P "DynamicCompositeType(a=>Int32Type)"},
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_str_eq(class_text(class(names[i][0])), names[i][1]);
}
END_TEST

START_TEST(test_wrong_class_names_are_errors)
{
	static const char *const names[][2] = {
	    {"FooType", "Unable to find abstract-type class '" P "FooType'"},
	    {"org.apache.Foo", "Unable to find abstract-type class 'org.apache.Foo'"},
	    {"ListType", "Invalid definition for comparator " P "ListType."},
	    {"MapType(Int32Type)", "Invalid definition for comparator " P "MapType."},
	    {"UserType(ks,616,61:Int32Type)", "Invalid definition for comparator " P "UserType."},
	};
	const struct type *type;
	struct error err;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ck_assert_int_eq(
		    type_parse_class(slice_of_string(names[i][0]), &arena, &type, &err), -1);
		ck_assert_str_eq(err.text, names[i][1]);
		ck_assert_int_eq(err.code, ERROR_CONFIG);
	}
	ck_assert_int_eq(
	    type_parse_class(slice_of_string("ListType(Int32Type"), &arena, &type, &err), -1);
	ck_assert_int_eq(err.code, ERROR_SYNTAX);
}
END_TEST

START_TEST(test_fixed_lengths_are_those_of_the_row_codec)
{
	static const struct {
		const char *name;
		int length;
	} types[] = {{"boolean", 1}, {"int", 4}, {"float", 4}, {"bigint", 8}, {"double", 8},
	    {"timestamp", 8}, {"uuid", 16}, {"timeuuid", 16}, {"smallint", -1}, {"tinyint", -1},
	    {"date", -1}, {"time", -1}, {"counter", -1}, {"inet", -1}, {"text", -1}, {"empty", 0},
	    {"list<int>", -1}, {"vector<float, 3>", 12}};
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		ck_assert_int_eq(type_fixed_length(cql(types[i].name)), types[i].length);
	ck_assert_int_eq(type_fixed_length(class("ReversedType(Int32Type)")), 4);
	ck_assert_int_eq(type_fixed_length(class("LexicalUUIDType")), 16);
}
END_TEST

START_TEST(test_validation_says_what_cassandra_says)
{
	static const char *const cases[][3] = {
	    {"AsciiType", "80", "Invalid byte for ascii: -128"},
	    {"UTF8Type", "ff", "String didn't validate."},
	    {"UTF8Type", "e08080", "String didn't validate."},
	    {"UTF8Type", "c3", "String didn't validate."},
	    {"UTF8Type", "c080", NULL},
	    {"UTF8Type", "eda080", NULL},
	    {"UTF8Type", "f7bfbfbf", NULL},
	    {"Int32Type", "000000", "Expected 4 or 0 byte int (3)"},
	    {"Int32Type", "", NULL},
	    {"ShortType", "", "Expected 2 bytes for a smallint (0)"},
	    {"TimeUUIDType", "00000000000040000000000000000000",
		"Invalid version for TimeUUID type: 0x0"},
	    {"DurationType", "0201", "Expected at least 3 bytes for a duration (2)"},
	    {"DurationType", "020104",
		"The duration months, days and nanoseconds must be all of the same sign "
		"(1, -1, 2)"},
	    {"ListType(Int32Type)", "00000001", "Not enough bytes to read a list"},
	    {"ListType(Int32Type)", "00000001000000020000", "Expected 4 or 0 byte int (2)"},
	    {"ListType(Int32Type)", "00000001ffffffff", "Null value read when not allowed"},
	    {"ListType(Int32Type)", "0000000000", "Unexpected extraneous bytes after list value"},
	    {"ListType(Int32Type)", "ffffffff", NULL},
	    {"MapType(Int32Type,Int32Type)", "00000001000000040000000000000000ff",
		"Unexpected extraneous bytes after map value"},
	    {"TupleType(Int32Type,UTF8Type)", "000000",
		"Not enough bytes to read size of 0th component"},
	    {"TupleType(Int32Type,UTF8Type)", "0000000400",
		"Not enough bytes to read 0th component"},
	    {"TupleType(Int32Type)", "000000040000000000",
		"Invalid remaining data after end of tuple value"},
	    {"UserType(ks,6162,61:Int32Type)", "0000000300000000",
		"Failure validating the 0th field a; Expected 4 or 0 byte int (3)"},
	    {"CompositeType(Int32Type,UTF8Type)", "000400000001000001",
		"Not enough bytes to read value of component 1"},
	    {"DecimalType", "000000", "Expected 0 or at least 4 bytes (3)"},
	    {"InetAddressType", "0000", "Expected 4 or 16 byte inetaddress; got 0000"},
	    {"EmptyType", "00", "EmptyType only accept empty values"},
	};
	struct error err;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc = type_validate(class(cases[i][0]), hex(cases[i][1]), &err);

		ck_assert_int_eq(rc, cases[i][2] == NULL ? 0 : -1);
		if (rc != 0)
			ck_assert_str_eq(err.text, cases[i][2]);
	}
}
END_TEST

static int
sign(int x)
{
	return (x > 0) - (x < 0);
}

/* The value that comes back from a form has this very form, and nothing of what follows is taken. */
static void
check_form_decodes(const struct type *type, bool is_reversed, struct buffer *form)
{
	struct reader reader;
	struct buffer again;
	struct error err;
	struct slice value;

	buffer_init(&again);
	buffer_put_u8(form, 0x40);
	reader = reader_of(buffer_slice(form));
	ck_assert_msg(type_from_comparable(type, is_reversed, &reader, &arena, &value, &err) == 0,
	    "type kind %d: %s:%d", type->kind, err.file, err.line);
	ck_assert_uint_eq(reader_left(&reader), 1);
	form->size--;
	type_to_comparable(type, is_reversed, value, &again);
	ck_assert_int_eq(slice_compare(buffer_slice(form), buffer_slice(&again)), 0);
	buffer_fini(&again);
}

static int
compare_forms(const struct type *type, bool is_reversed, struct slice a, struct slice b)
{
	struct buffer x, y;
	struct error err;
	size_t least;
	int order;

	buffer_init(&x);
	buffer_init(&y);
	type_to_comparable(type, is_reversed, a, &x);
	type_to_comparable(type, is_reversed, b, &y);
	ck_assert_uint_le(x.size, type_comparable_size_max(type, a));
	if (type_validate(type, a, &err) == 0)
		check_form_decodes(type, is_reversed, &x);
	least = x.size < y.size ? x.size : y.size;
	order = memcmp(x.data, y.data, least);
	/* No form may be the beginning of another. */
	if (order == 0)
		ck_assert_uint_eq(x.size, y.size);
	buffer_fini(&x);
	buffer_fini(&y);
	return sign(order);
}

static void
check_order(const struct type *type, struct slice a, struct slice b)
{
	int order = sign(type_compare(type, a, b));

	ck_assert_int_eq(sign(type_compare(type, b, a)), -order);
	ck_assert_int_eq(compare_forms(type, false, a, b), order);
	ck_assert_int_eq(compare_forms(type, true, a, b), -order);
}

START_TEST(test_order_is_that_of_cassandra)
{
	static const struct {
		const char *type, *a, *b;
		int order;
	} cases[] = {
	    {"TupleType(Int32Type,Int32Type)", "00000004000000010000000400000002",
		"0000000400000001ffffffff", 1},
	    {"TupleType(Int32Type,Int32Type)", "0000000400000001", "0000000400000001ffffffff", 0},
	    {"TupleType(Int32Type,Int32Type)", "", "ffffffff", -1},
	    {"TupleType(Int32Type,Int32Type,Int32Type)", "0000000400000001",
		"0000000400000001ffffffff0000000400000000", -1},
	    {"TupleType(Int32Type)", "00000000", "ffffffff", 1},
	    {"ListType(Int32Type)", "", "00000000", -1},
	    {"SimpleDateType", "80000000", "7fffffff", 1},
	    {"TimestampType", "8000000000000000", "7fffffffffffffff", -1},
	    {"ByteType", "80", "7f", -1},
	    {"ShortType", "8000", "7fff", -1},
	    {"UUIDType", "00000000000010000000000000000000", "00000000000010008000000000000000",
		-1},
	    {"UUIDType", "00000000000040000000000000000000", "80000000000040008000000000000000",
		-1},
	    {"UUIDType", "00000000000040000000000000000000", "00000000000010008000000000000000", 1},
	    {"TimeUUIDType", "00000000000010000000000000000080", "00000000000010000000000000000001",
		-1},
	    {"LexicalUUIDType", "00000000000010000000000000000000",
		"80000000000010000000000000000000", 1},
	    {"BooleanType", "01", "05", 0},
	    {"BooleanType", "", "00", -1},
	    {"IntegerType", "", "80", -1},
	    {"IntegerType", "0001", "01", 0},
	    {"IntegerType", "ff", "00", -1},
	    {"DecimalType", "000000010a", "0000000201", 1},
	    {"DecimalType", "000000010a", "000000026400", -1},
	    {"DecimalType", "000000010a", "0000000264", 0},
	    {"DecimalType", "", "00000000ff", -1},
	    {"FloatType", "80000000", "00000000", -1},
	    {"FloatType", "ffc00000", "7f800001", 0},
	    {"FloatType", "7f800000", "ffc00000", -1},
	    {"DoubleType", "", "fff0000000000000", -1},
	    {"UTF8Type", "61", "6100", -1},
	    {"InetAddressType", "01020304", "00", 1},
	    {"CompositeType(Int32Type)", "00040000000100", "00040000000101", -1},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct type *type = class(cases[i].type);
		struct slice a = hex(cases[i].a), b = hex(cases[i].b);

		ck_assert_msg(sign(type_compare(type, a, b)) == cases[i].order, "%s %s %s",
		    cases[i].type, cases[i].a, cases[i].b);
		check_order(type, a, b);
	}
}
END_TEST

/* A small generator of valid values, so that doubles and near misses are frequent. */
static uint64_t seed;

static uint32_t
next(uint32_t bound)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % bound;
}

static struct slice
random_bytes(size_t size)
{
	static const uint8_t likely[] = {0, 0, 1, 0x7f, 0x80, 0xff, 0xfe};
	uint8_t *out = arena_alloc_bytes(&arena, size);
	size_t i;

	for (i = 0; i < size; i++)
		out[i] = next(3) ? likely[next(sizeof(likely))] : (uint8_t)next(256);
	return slice_of(out, size);
}

static struct slice
random_value(const struct type *type)
{
	struct slice elements[8], value;
	uint32_t count, i;

	if (type_is_collection(type) || type_is_tuple(type) || type->kind == TYPE_VECTOR) {
		uint32_t slices;

		count = type_is_collection(type) ? next(4)
		    : type_is_tuple(type)        ? next(type->param_count + 1)
						 : type->dimension;
		slices = type->kind == TYPE_MAP ? 2 * count : count;
		for (i = 0; i < slices; i++) {
			const struct type *inner = type_is_tuple(type) ? type->params[i]
			    : type->kind == TYPE_MAP                   ? type->params[i & 1]
								       : type->params[0];

			elements[i] = random_value(inner);
			if (type_is_tuple(type) && next(4) == 0)
				elements[i] = slice_null;
		}
		if (type->kind == TYPE_SET)
			count = type_sort_elements(type->params[0], elements, count, 1);
		return type_pack(type, elements, count, &arena);
	}
	if (type->fixed_length > 0) {
		value = random_bytes((size_t)type->fixed_length);
		if (type->kind == TYPE_TIMEUUID)
			((uint8_t *)(uintptr_t)value.data)[6] &= 0x1f,
			    ((uint8_t *)(uintptr_t)value.data)[6] |= 0x10;
		return type_allows_empty(type) && next(10) == 0 ? slice_empty : value;
	}
	switch (type->kind) {
	case TYPE_SMALLINT:
		return random_bytes(2);
	case TYPE_TINYINT:
		return random_bytes(1);
	case TYPE_DATE:
		return random_bytes(4);
	case TYPE_TIME:
		return random_bytes(8);
	case TYPE_DECIMAL: {
		uint8_t *out = arena_alloc_bytes(&arena, 40);
		struct slice digits = random_bytes(1 + next(20));

		store_u32(out, next(3) ? next(4) : next(100000) - 50000);
		memcpy(out + 4, digits.data, digits.size);
		return next(10) == 0 ? slice_empty : slice_of(out, 4 + digits.size);
	}
	case TYPE_VARINT:
		return random_bytes(next(8) == 0 ? next(200) : next(5));
	case TYPE_INET:
		return random_bytes(next(2) ? 4 : 16);
	default:
		return random_bytes(next(6));
	}
}

START_TEST(test_comparable_order_is_compare_order)
{
	static const char *const names[] = {"ascii", "bigint", "blob", "boolean", "date", "decimal",
	    "double", "float", "inet", "int", "smallint", "text", "time", "timestamp", "timeuuid",
	    "tinyint", "uuid", "varint", "frozen<list<int>>", "frozen<set<blob>>",
	    "frozen<map<varint, blob>>", "tuple<int, blob, frozen<list<tinyint>>>",
	    "frozen<address>", "vector<float, 2>", "vector<text, 2>",
	    "frozen<list<frozen<tuple<boolean, boolean>>>>", "'LexicalUUIDType'",
	    "'ReversedType(BytesType)'"};
	size_t i;
	int round;

	seed = 20260711;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct type *type = cql(names[i]);

		for (round = 0; round < 3000; round++) {
			struct slice a = random_value(type), b = random_value(type);

			check_order(type, a, b);
			check_order(type, a, a);
			arena_reset(&arena);
			type = cql(names[i]);
		}
	}
}
END_TEST

START_TEST(test_forms_can_be_concatenated)
{
	const struct type *text = type_native(TYPE_TEXT);
	struct slice a1 = slice_of("a", 1), a2 = slice_of("a\0", 2);
	struct buffer x, y;

	/* ("a", 0xff) before ("a\0", "") whatever the second component is. */
	buffer_init(&x);
	buffer_init(&y);
	type_to_comparable(text, false, a1, &x);
	type_to_comparable(text, false, slice_of("\xff\xff", 2), &x);
	type_to_comparable(text, false, a2, &y);
	type_to_comparable(text, false, slice_empty, &y);
	ck_assert_int_lt(slice_compare(buffer_slice(&x), buffer_slice(&y)), 0);
	buffer_fini(&x);
	buffer_fini(&y);
}
END_TEST

START_TEST(test_set_elements_are_sorted_and_unique)
{
	struct slice set[] = {hex("00000003"), hex("00000001"), hex("00000003"), hex("00000002")};
	struct slice map[] = {
	    hex("00000002"), hex("aa"), hex("00000001"), hex("bb"), hex("00000002"), hex("cc")};
	struct slice packed;

	ck_assert_uint_eq(type_sort_elements(type_native(TYPE_INT), set, 4, 1), 3);
	packed = type_pack(cql("set<int>"), set, 3, &arena);
	ck_assert(
	    slice_equal(packed, hex("00000003000000040000000100000004000000020000000400000003")));
	ck_assert_uint_eq(type_sort_elements(type_native(TYPE_INT), map, 3, 2), 2);
	ck_assert(slice_equal(map[1], hex("bb")));
	ck_assert(slice_equal(map[3], hex("cc")));
}
END_TEST

START_TEST(test_iterator_ends_at_a_cut_value)
{
	const struct type *type = cql("list<int>");
	struct type_iterator iterator;
	struct slice element;

	type_iterator_init(&iterator, type, hex("7fffffff0000000400000001"));
	ck_assert(!type_iterator_next(&iterator, &element, NULL));
	ck_assert(iterator.is_failed);
	type_iterator_init(&iterator, type, hex("00000002000000040000000100000004000000"));
	ck_assert(type_iterator_next(&iterator, &element, NULL));
	ck_assert(!type_iterator_next(&iterator, &element, NULL));
	ck_assert(iterator.is_failed);
}
END_TEST

START_TEST(test_compatibility_of_types)
{
	ck_assert(type_is_value_compatible(cql("blob"), cql("int")));
	ck_assert(type_is_value_compatible(cql("varint"), cql("int")));
	ck_assert(!type_is_value_compatible(cql("int"), cql("varint")));
	ck_assert(!type_is_value_compatible(cql("int"), cql("text")));
	ck_assert(type_is_compatible(cql("text"), cql("ascii")));
	ck_assert(type_is_compatible(cql("blob"), cql("text")));
	ck_assert(!type_is_compatible(cql("ascii"), cql("text")));
	ck_assert(type_is_value_compatible(cql("list<blob>"), cql("list<int>")));
	ck_assert(!type_is_value_compatible(cql("set<blob>"), cql("set<int>")));
	ck_assert(type_is_compatible(cql("tuple<int, text>"), cql("tuple<int>")));
	ck_assert(!type_is_compatible(cql("tuple<int>"), cql("tuple<int, text>")));
}
END_TEST

START_TEST(test_replacing_a_user_type_reaches_inside)
{
	struct slice fields[] = {slice_of_string("a")};
	const struct type *params[] = {type_native(TYPE_INT)};
	const struct type *udt = type_udt(
	    &arena, slice_of_string("ks"), slice_of_string("address"), fields, params, 1, true);
	const struct type *type = type_replace_udt(&arena, cql("list<frozen<address>>"), udt);

	ck_assert_uint_eq(type->params[0]->param_count, 1);
	ck_assert(!type->params[0]->is_multi_cell);
	ck_assert(type_uses_udt(type, slice_of_string("ks"), slice_of_string("address")));
	ck_assert(!type_equal(type, cql("list<frozen<address>>")));
	ck_assert(type_equal(type_copy(&arena, type), type));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("cql/type");
	TCase *cases = tcase_create("type");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_set_timeout(cases, 120);
	tcase_add_test(cases, test_cql_names_print_back);
	tcase_add_test(cases, test_cql_refuses_what_cassandra_refuses);
	tcase_add_test(cases, test_class_names_print_back);
	tcase_add_test(cases, test_wrong_class_names_are_errors);
	tcase_add_test(cases, test_fixed_lengths_are_those_of_the_row_codec);
	tcase_add_test(cases, test_validation_says_what_cassandra_says);
	tcase_add_test(cases, test_order_is_that_of_cassandra);
	tcase_add_test(cases, test_comparable_order_is_compare_order);
	tcase_add_test(cases, test_forms_can_be_concatenated);
	tcase_add_test(cases, test_set_elements_are_sorted_and_unique);
	tcase_add_test(cases, test_iterator_ends_at_a_cut_value);
	tcase_add_test(cases, test_compatibility_of_types);
	tcase_add_test(cases, test_replacing_a_user_type_reaches_inside);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
