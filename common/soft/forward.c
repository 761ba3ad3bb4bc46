/* SPDX-License-Identifier: MIT */
/*
 * The way to libibverbs' own functions behind ours.
 */
#include "common/soft/object.h"

#include <dlfcn.h>

void *soft_real(const char *name)
{
	/*
	 * Thirty-odd names exist as IBVERBS_1.0 too, with the ABI of 2006:
	 * ask for the later one; newer names are in a later version only.
	 */
	void *real = dlvsym(RTLD_NEXT, name, "IBVERBS_1.1");

	return real ? real : dlsym(RTLD_NEXT, name);
}
