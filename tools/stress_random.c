/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_random.h"

#include <math.h>

double
stress_random_gaussian(struct stress_random *random)
{
	double a, b, square, factor;

	if (random->has_next_gaussian) {
		random->has_next_gaussian = false;
		return random->next_gaussian;
	}
	do {
		a = 2 * stress_random_double(random) - 1;
		b = 2 * stress_random_double(random) - 1;
		square = a * a + b * b;
	} while (square >= 1 || square == 0);
	factor = sqrt(-2 * log(square) / square);
	random->next_gaussian = b * factor;
	random->has_next_gaussian = true;
	return a * factor;
}
