/* SPDX-License-Identifier: MIT */
/*
 * The QP state table: InfiniBand specification volume 1, 11.2.5.2, as the
 * kernel's qp_state_table has it.
 */
#include "common/rules/rules.h"

#include <errno.h>
#include <stddef.h>

#define PKEY IBV_QP_PKEY_INDEX
#define PORT IBV_QP_PORT
#define QKEY IBV_QP_QKEY
#define ACCESS IBV_QP_ACCESS_FLAGS
#define AV IBV_QP_AV
#define MTU IBV_QP_PATH_MTU
#define DEST IBV_QP_DEST_QPN
#define RQ_PSN IBV_QP_RQ_PSN
#define SQ_PSN IBV_QP_SQ_PSN
#define DEST_RD IBV_QP_MAX_DEST_RD_ATOMIC
#define RD IBV_QP_MAX_QP_RD_ATOMIC
#define RNR_TIMER IBV_QP_MIN_RNR_TIMER
#define TIMEOUT IBV_QP_TIMEOUT
#define RETRY IBV_QP_RETRY_CNT
#define RNR_RETRY IBV_QP_RNR_RETRY
#define CUR IBV_QP_CUR_STATE
#define ALT IBV_QP_ALT_PATH
#define MIG IBV_QP_PATH_MIG_STATE
#define NOTIFY IBV_QP_EN_SQD_ASYNC_NOTIFY

/* RESET from every state, ERR from every one but RESET: nothing is needed. */
#define ALWAYS(type)                                                          \
	{ type, IBV_QPS_RESET, IBV_QPS_RESET, 0, 0 },                         \
	{ type, IBV_QPS_INIT, IBV_QPS_RESET, 0, 0 },                          \
	{ type, IBV_QPS_RTR, IBV_QPS_RESET, 0, 0 },                           \
	{ type, IBV_QPS_RTS, IBV_QPS_RESET, 0, 0 },                           \
	{ type, IBV_QPS_SQD, IBV_QPS_RESET, 0, 0 },                           \
	{ type, IBV_QPS_SQE, IBV_QPS_RESET, 0, 0 },                           \
	{ type, IBV_QPS_ERR, IBV_QPS_RESET, 0, 0 },                           \
	{ type, IBV_QPS_INIT, IBV_QPS_ERR, 0, 0 },                            \
	{ type, IBV_QPS_RTR, IBV_QPS_ERR, 0, 0 },                             \
	{ type, IBV_QPS_RTS, IBV_QPS_ERR, 0, 0 },                             \
	{ type, IBV_QPS_SQD, IBV_QPS_ERR, 0, 0 },                             \
	{ type, IBV_QPS_SQE, IBV_QPS_ERR, 0, 0 },                             \
	{ type, IBV_QPS_ERR, IBV_QPS_ERR, 0, 0 }

#define RC IBV_QPT_RC
#define UC IBV_QPT_UC
#define UD IBV_QPT_UD

/* clang-format off */
const struct rules_transition rules_transitions[] = {
	{ RC, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0 },
	{ RC, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS },
	{ RC, IBV_QPS_INIT, IBV_QPS_RTR,
	  AV | MTU | DEST | RQ_PSN | DEST_RD | RNR_TIMER,
	  ALT | ACCESS | PKEY },
	{ RC, IBV_QPS_RTR, IBV_QPS_RTS,
	  TIMEOUT | RETRY | RNR_RETRY | SQ_PSN | RD,
	  CUR | ALT | ACCESS | RNR_TIMER | MIG },
	{ RC, IBV_QPS_RTS, IBV_QPS_RTS, 0,
	  CUR | ACCESS | ALT | MIG | RNR_TIMER },
	{ RC, IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY },
	{ RC, IBV_QPS_SQD, IBV_QPS_RTS, 0,
	  CUR | ALT | ACCESS | RNR_TIMER | MIG },
	{ RC, IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  PORT | AV | TIMEOUT | RETRY | RNR_RETRY | RD | DEST_RD | ALT |
	  ACCESS | PKEY | RNR_TIMER | MIG },
	{ RC, IBV_QPS_SQE, IBV_QPS_RTS, 0, 0 },
	ALWAYS(RC),

	{ UC, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0 },
	{ UC, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS },
	{ UC, IBV_QPS_INIT, IBV_QPS_RTR, AV | MTU | DEST | RQ_PSN,
	  ALT | ACCESS | PKEY },
	{ UC, IBV_QPS_RTR, IBV_QPS_RTS, SQ_PSN, CUR | ALT | ACCESS | MIG },
	{ UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS | ALT | MIG },
	{ UC, IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY },
	{ UC, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ALT | ACCESS | MIG },
	{ UC, IBV_QPS_SQD, IBV_QPS_SQD, 0, AV | ALT | ACCESS | PKEY | MIG },
	{ UC, IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | ACCESS },
	ALWAYS(UC),

	{ UD, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | QKEY, 0 },
	{ UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | QKEY },
	{ UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, PKEY | QKEY },
	{ UD, IBV_QPS_RTR, IBV_QPS_RTS, SQ_PSN, CUR | QKEY },
	{ UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | QKEY },
	{ UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY },
	{ UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | QKEY },
	{ UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, PKEY | QKEY },
	{ UD, IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | QKEY },
	ALWAYS(UD),
};
/* clang-format on */
const int rules_transitions_count =
	sizeof(rules_transitions) / sizeof(*rules_transitions);

const struct rules_transition *rules_transition_find(enum ibv_qp_type type,
						     enum ibv_qp_state from,
						     enum ibv_qp_state to)
{
	for (int i = 0; i < rules_transitions_count; i++) {
		const struct rules_transition *row = &rules_transitions[i];

		if (row->type == type && row->from == from && row->to == to)
			return row;
	}
	return NULL;
}

int rules_modify_check(enum ibv_qp_type type, enum ibv_qp_state from,
		       enum ibv_qp_state to, int mask, int *missing,
		       int *extra)
{
	const struct rules_transition *row =
		rules_transition_find(type, from, to);

	*missing = 0;
	*extra = 0;
	if (!row)
		return EINVAL;
	*missing = row->required & ~mask;
	*extra = mask & ~(row->required | row->optional | IBV_QP_STATE);
	return *missing || *extra ? EINVAL : 0;
}
