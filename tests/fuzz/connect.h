/* SPDX-License-Identifier: MIT */
/*
 * A QP on its way, for the fuzz targets.
 */
#ifndef FUZZ_CONNECT_H
#define FUZZ_CONNECT_H

#include <stdbool.h>

#include "common/rules/rules.h"

/* From any state by RESET to RTS, with what each transition needs of `attr`. */
static bool to_rts(struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
	attr->qp_state = IBV_QPS_RESET;
	if (ibv_modify_qp(qp, attr, IBV_QP_STATE))
		return false;
	for (enum ibv_qp_state from = IBV_QPS_RESET; from < IBV_QPS_RTS;
	     from++) {
		const struct rules_transition *transition =
			rules_transition_find(qp->qp_type, from, from + 1);

		attr->qp_state = from + 1;
		if (!transition ||
		    ibv_modify_qp(qp, attr,
				  IBV_QP_STATE | transition->required))
			return false;
	}
	return true;
}

#endif
