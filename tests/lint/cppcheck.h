/* SPDX-License-Identifier: Apache-2.0 */
/* What cppcheck has to know of headers that it does not read; see cppcheck beside this file. */
#define json_array_foreach(array, index, value)                                                    \
	for (index = 0; (value = json_array_get(array, index)) != NULL; index++)
#define json_object_foreach(object, name, value)                                                   \
	for (name = json_object_first(object, &value); name != NULL;                               \
	     name = json_object_next(object, &value))
