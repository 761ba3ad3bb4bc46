/* SPDX-License-Identifier: MIT */
/* What main.c knows and the cases' world needs: which device it is about. */
#ifndef RUN_H
#define RUN_H

extern const char *device_name; /* set once, from the command line */

#endif
