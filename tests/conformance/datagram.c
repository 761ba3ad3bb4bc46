/* SPDX-License-Identifier: MIT */
/* UC and UD: what is lost is lost, and nobody is told. */
#include "tests/conformance/conform.h"

#include <errno.h>
#include <string.h>

#include "common/rules/rules.h"

#define GRH 40

/* --- UC ----------------------------------------------------------------- */

enum {
	UC_SEND,
	UC_WRITE,
	UC_BAD_LKEY,
	UC_BAD_RKEY,
	UC_NO_RIGHT,
	UC_NO_RECV,
	UC_RECV_SHORT,
	UC_RECV_LKEY,
	UC_QP_RIGHT
};

static void uc(const struct rule *rule)
{
	struct pair_wish uc_wish = wish(IBV_QPT_UC);
	bool writes = rule->arg == UC_WRITE || rule->arg == UC_BAD_RKEY ||
		      rule->arg == UC_NO_RIGHT || rule->arg == UC_QP_RIGHT;
	struct pair *p;

	if (rule->arg == UC_NO_RIGHT)
		uc_wish.mr_access = IBV_ACCESS_LOCAL_WRITE;
	if (rule->arg == UC_QP_RIGHT)
		uc_wish.qp_access = 0;
	p = make_pair(open_world(), &uc_wish);
	fill_recv(p, rule->arg == UC_RECV_SHORT ? 4 : 64);
	if (rule->arg == UC_RECV_LKEY)
		p->b.recv_sge.lkey = 0xdead00;
	if (rule->arg != UC_NO_RECV)
		post_recv(p);
	fill_send(p, writes ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, 8);
	if (rule->arg == UC_BAD_LKEY)
		p->a.sge.lkey = 0xdead00;
	if (rule->arg == UC_BAD_RKEY)
		p->a.wr.wr.rdma.rkey = 0xdead00;
	post(p);
	look(rule, p);
}

/* --- UD ----------------------------------------------------------------- */

enum {
	UD_SEND,
	UD_QKEY,
	UD_QPN,
	UD_NO_RECV,
	UD_RECV_SHORT,
	UD_RECV_NO_GRH,
	UD_RECV_LKEY,
	UD_BAD_LKEY,
	UD_TOO_LONG,
	UD_AH_PD
};

static void ud(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_UD);
	uint32_t length = 100, room = 1000;

	if (rule->arg == UD_TOO_LONG)
		length = 4096 + 4;
	if (rule->arg == UD_RECV_SHORT)
		room = GRH + 4;
	if (rule->arg == UD_RECV_NO_GRH)
		room = length; /* enough for the payload alone */
	fill_recv(p, rule->arg == UD_TOO_LONG ? BUFFER : room);
	if (rule->arg == UD_RECV_LKEY)
		p->b.recv_sge.lkey = 0xdead00;
	if (rule->arg != UD_NO_RECV)
		post_recv(p);
	fill_send(p, IBV_WR_SEND, length);
	switch (rule->arg) {
	case UD_QKEY:
		p->a.wr.wr.ud.remote_qkey = QKEY + 1;
		break;
	case UD_QPN:
		p->a.wr.wr.ud.remote_qpn = 0xfffff0;
		break;
	case UD_BAD_LKEY:
		p->a.sge.lkey = 0xdead00;
		break;
	case UD_AH_PD:
		p->a.wr.wr.ud.ah = make_ah(p->w, make_pd(p->w));
		break;
	}
	post(p);
	look(rule, p);
}

enum { BYTES, FLAG, SOURCE, PAYLOAD, OPCODE };

static void ud_received(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_UD);
	struct ibv_wc wc;

	fill_recv(p, 1000);
	post_recv(p);
	fill_send(p, IBV_WR_SEND, 100);
	p->a.buffer[0] = 77;
	post(p);
	if (wait_wc(p->b.recv_cq, &wc, LIMIT_MS))
		answer("no success");
	switch (rule->arg) {
	case BYTES:
		answer("%u", wc.byte_len);
	case FLAG:
		answer(wc.wc_flags & IBV_WC_GRH ? "GRH" : "no GRH");
	case SOURCE:
		answer(wc.src_qp == p->a.qp->qp_num ? "src_qp" : "another");
	case PAYLOAD:
		answer("%d at 40", p->b.buffer[GRH]);
	case OPCODE:
		answer("%s", rules_wc_opcode((int)wc.opcode));
	}
}

/* The peer's address out of a completion, and an answer that arrives. */
static void ud_answer(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_UD);
	struct ibv_recv_wr *bad_recv;
	struct ibv_send_wr wr, *bad_wr;
	struct ibv_wc wc;

	(void)rule;
	fill_recv(p, 1000);
	post_recv(p);
	p->b.recv_sge.addr = (uintptr_t)p->a.buffer + PAGE;
	p->b.recv_sge.lkey = p->a.mr->lkey;
	if (ibv_post_recv(p->a.qp, &p->b.recv_wr, &bad_recv))
		answer("post_recv failed");
	fill_send(p, IBV_WR_SEND, 100);
	post(p);
	if (wait_wc(p->b.recv_cq, &wc, LIMIT_MS))
		answer("no success");
	wr = p->a.wr;
	p->a.sge.lkey = p->b.mr->lkey;
	p->a.sge.addr = (uintptr_t)p->b.buffer;
	wr.wr.ud.ah = ibv_create_ah_from_wc(p->w->pd, &wc,
					    (struct ibv_grh *)p->b.buffer, 1);
	if (!wr.wr.ud.ah)
		answer("create_ah_from_wc: %s", call_name(errno));
	wr.wr.ud.remote_qpn = wc.src_qp;
	if (ibv_post_send(p->b.qp, &wr, &bad_wr))
		answer("post_send failed");
	answer("%s", wc_name(wait_status(p->a.recv_cq, LIMIT_MS)));
}

#define OK         "IBV_WC_SUCCESS"
#define PROT       "IBV_WC_LOC_PROT_ERR"
#define STAY       "RTS, RTS"
#define DROPPED    "IBTA 9.8: dropped, nobody is told"
#define DROPPED_UD "IBTA 9.8: dropped, nobody is told"
#define BROKEN     "IBTA 9.9.3: a completion with an error"
#define BROKEN_RXE "the receive ends in LOC_QP_OP_ERR"
#define LOCAL      "IBTA 9.9.2: LOC_PROT_ERR; cards the same"
#define LOCAL_RXE \
	"LOC_QP_OP_ERR on 6.1; 6.12 loses the status, WR_FLUSH_ERR is left"

static const struct rule rules[] = {
	FAULT("uc.send", uc, OK, OK, STAY, "UC SEND", "IBTA 9.8",
	      .arg = UC_SEND),
	FAULT("uc.write", uc, OK, "nothing", STAY, "UC WRITE", "IBTA 9.8",
	      .arg = UC_WRITE),
	FAULT("uc.bad_lkey", uc, PROT, "nothing", "ERR, RTS",
	      "UC SEND from an lkey that is none", LOCAL, .rxe = LOCAL_RXE,
	      .arg = UC_BAD_LKEY),
	FAULT("uc.bad_rkey", uc, OK, "nothing", STAY,
	      "UC WRITE to an rkey that is none", DROPPED, .arg = UC_BAD_RKEY),
	FAULT("uc.rkey_no_right", uc, OK, "nothing", STAY,
	      "UC WRITE to an MR without REMOTE_WRITE", DROPPED,
	      .arg = UC_NO_RIGHT),
	FAULT("uc.qp_no_right", uc, OK, "nothing", STAY,
	      "UC WRITE to a QP without REMOTE_WRITE", DROPPED,
	      .arg = UC_QP_RIGHT),
	FAULT("uc.no_receive", uc, OK, "nothing", STAY,
	      "UC SEND without a receive", DROPPED, .arg = UC_NO_RECV),
	FAULT("uc.recv_short", uc, OK, "IBV_WC_LOC_LEN_ERR", "RTS, ERR",
	      "UC receive of fewer bytes than the SEND has", BROKEN,
	      .rxe = BROKEN_RXE, .arg = UC_RECV_SHORT),
	FAULT("uc.recv_bad_lkey", uc, OK, PROT, "RTS, ERR",
	      "UC receive into an lkey that is none", BROKEN, .rxe = BROKEN_RXE,
	      .arg = UC_RECV_LKEY),

	FAULT("ud.send", ud, OK, OK, STAY, "UD SEND", "IBTA 9.8",
	      .arg = UD_SEND),
	FAULT("ud.wrong_qkey", ud, OK, "nothing", STAY,
	      "UD SEND with another Q_Key", DROPPED_UD, .arg = UD_QKEY),
	FAULT("ud.wrong_qpn", ud, OK, "nothing", STAY,
	      "UD SEND to a QP that is not there", DROPPED_UD, .arg = UD_QPN),
	FAULT("ud.no_receive", ud, OK, "nothing", STAY,
	      "UD SEND without a receive", DROPPED_UD, .arg = UD_NO_RECV),
	FAULT("ud.recv_short", ud, OK, "nothing", STAY,
	      "UD receive of fewer than 40 bytes and the payload", DROPPED_UD,
	      .rxe = "6.1 breaks the receiver", .arg = UD_RECV_SHORT),
	FAULT("ud.recv_no_room_for_grh", ud, OK, "nothing", STAY,
	      "UD receive of the payload's length alone", DROPPED_UD,
	      .rxe = "6.1 breaks the receiver", .arg = UD_RECV_NO_GRH),
	FAULT("ud.recv_bad_lkey", ud, OK, PROT, "RTS, ERR",
	      "UD receive into an lkey that is none", BROKEN, .rxe = BROKEN_RXE,
	      .arg = UD_RECV_LKEY),
	FAULT("ud.bad_lkey", ud, PROT, "nothing", "ERR, RTS",
	      "UD SEND from an lkey that is none", LOCAL, .rxe = LOCAL_RXE,
	      .arg = UD_BAD_LKEY),
	FAULT("ud.too_long", ud, "IBV_WC_LOC_LEN_ERR", "nothing", "ERR, RTS",
	      "UD SEND longer than the port's MTU",
	      "cards: LOC_LEN_ERR; IBTA C10-93.1.1: silence",
	      .rxe = "success, and nothing is sent", .arg = UD_TOO_LONG),
	FAULT("ud.ah_other_pd", ud, "IBV_WC_LOC_QP_OP_ERR", "nothing",
	      "ERR, RTS", "UD SEND by another PD's AH",
	      "cards: LOC_QP_OP_ERR or SUCCESS",
	      .rxe = "6.12 loses the status, WR_FLUSH_ERR is left",
	      .arg = UD_AH_PD),
	RULE("ud.received.byte_len", ud_received, "140",
	     "byte_len of a UD receive counts the 40 bytes in front",
	     "ibv_poll_cq(3)", .arg = BYTES),
	RULE("ud.received.flag", ud_received, "GRH",
	     "A UD receive on RoCE has the GRH flag", "IBTA A16", .arg = FLAG),
	RULE("ud.received.src_qp", ud_received, "src_qp",
	     "A UD receive says which QP sent it", "ibv_poll_cq(3)",
	     .arg = SOURCE),
	RULE("ud.received.payload", ud_received, "77 at 40",
	     "The payload of a UD receive starts at byte 40",
	     "ibv_post_recv(3)", .arg = PAYLOAD),
	RULE("ud.received.opcode", ud_received, "IBV_WC_RECV",
	     "A UD receive's opcode", "ibv_poll_cq(3)", .arg = OPCODE),
	RULE("ud.answer", ud_answer, OK,
	     "An AH made of a UD completion reaches its sender",
	     "ibv_create_ah_from_wc(3)"),
};
const struct rules datagram_rules = RULES(rules);
