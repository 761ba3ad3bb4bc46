#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
What the probe says of extended QPs and CQs, whose calls go through pointers
in the objects themselves: tests/programs/extended.c.
"""
import os
import shutil

import peer

PROGRAM = os.path.join(peer.BUILD, "tests/programs/extended")
tap = peer.Tap()


def run(case, start=None):
    session = peer.Peer(PROGRAM, case, start=start)
    return session, session.finish()


def rets(session, call):
    return [e for e in session.events
            if e["ev"] == "ret" and e["call"] == call]


def completions(session):
    return [w for e in session.events if e["ev"] == "ret"
            and e["call"] in ("ibv_start_poll", "ibv_next_poll")
            for w in e["out"].get("wc", [])]


def batch(start):
    session, status = run("batch", start)
    done = rets(session, "ibv_wr_complete")
    tap.equal((status, len(done), done[0]["ok"], done[0]["ret"]),
              (0, 1, True, 0), f"batch, {start}: one event")
    wr = done[0]["args"]["wr"]
    lkey = session.ret("ibv_reg_mr")["out"]["lkey"]
    tap.equal([(w["wr_id"], w["opcode"][7:], w["send_flags"]) for w in wr],
              [(i + 1, op, "IBV_SEND_SIGNALED") for i, op in enumerate(
                  ["SEND_WITH_IMM", "RDMA_WRITE", "RDMA_WRITE_WITH_IMM",
                   "RDMA_READ", "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD",
                   "BIND_MW", "SEND"])], f"batch, {start}: the WRs in order")
    base = int(wr[0]["sg_list"][0]["addr"], 16)
    tap.equal(wr[0]["imm_data"], 0x1234, f"batch, {start}: immediate data")
    tap.equal([w.get("sg_list") for w in (wr[0], wr[2])],
              [[{"addr": hex(base), "length": 48, "lkey": lkey}],
               [{"addr": hex(base), "length": 8, "lkey": lkey},
                {"addr": hex(base + 64), "length": 24, "lkey": lkey}]],
              f"batch, {start}: SGEs as they were set")
    tap.equal([(w.get("inline_data"), "sg_list" in w) for w in (wr[1], wr[7])],
              [([{"addr": hex(base), "length": 12}], False),
               ([{"addr": hex(base), "length": 3},
                 {"addr": hex(base + 8), "length": 5}], False)],
              f"batch, {start}: inline data too")
    tap.equal([int(w["wr.rdma.remote_addr"], 16) - base
               for w in (wr[1], wr[2], wr[3])], [512, 640, 512],
              f"batch, {start}: remote addresses")
    tap.equal([(w["wr.atomic.compare_add"], w["wr.atomic.swap"])
               for w in wr[4:6]], [(10, 11), (5, 0)],
              f"batch, {start}: atomic operands")
    tap.equal([wr[6].get(k) for k in
               ("bind_mw.mw", "bind_mw.bind_info.mr",
                "bind_mw.bind_info.length",
                "bind_mw.bind_info.mw_access_flags")],
              ["mw0", "mr0", 128, "IBV_ACCESS_REMOTE_WRITE"],
              f"batch, {start}: the window and its MR")
    return session


def completed(session):
    """Stepped: each completion on its own, as far as it may be read."""
    wc = completions(session)
    tap.equal(sorted(w["wr_id"] for w in wc),
              [1, 2, 3, 4, 5, 6, 7, 8, 101, 102, 103],
              "polls: every completion")
    tap.ok(all(w["status"] == "IBV_WC_SUCCESS" and "opcode" in w and
               "byte_len" in w and "qp_num" in w and
               "completion_ts" not in w for w in wc),
           "polls: the fields that the CQ was made for", wc)
    tap.equal({w["wr_id"]: w["imm_data"] for w in wc if "imm_data" in w},
              {101: 0x1234, 102: 7}, "polls: immediate data where there is")
    entered = session.calls("enter")
    tap.ok(not any(c.startswith(("ibv_wr_s", "ibv_wr_r", "ibv_wc"))
                   for c in entered), "builders and readers are no events")
    tap.equal(entered.count("ibv_end_poll"),
              len([e for e in rets(session, "ibv_start_poll")
                   if e["ret"] == 0]), "each poll that began ends")
    empty = [e for e in rets(session, "ibv_next_poll") if e["ret"]]
    tap.equal({(e["ok"], e["ret"], e["err"], str(e["out"])) for e in empty},
              {(True, 2, 0, "{'wc': []}")}, "ENOENT is nothing, no failure")
    made = session.ret("ibv_create_qp_ex")["args"]
    tap.equal((made["pd"], "IBV_QP_EX_WITH_BIND_MW" in made["send_ops_flags"],
               session.ret("ibv_create_cq_ex")["args"]["wc_flags"]),
              ("pd0", True, "IBV_WC_EX_WITH_BYTE_LEN|IBV_WC_EX_WITH_IMM|"
               "IBV_WC_EX_WITH_QP_NUM"), "what they were created for")
    entered = [e for e in session.events if e["ev"] == "enter"
               and e["call"] == "ibv_wr_complete"]
    tap.equal((len(entered), entered[0]["stop"], entered[0]["args"]),
              (1, True, session.ret("ibv_wr_complete")["args"]),
              "the stop before it shows the same WRs")


def refused():
    session, status = run("refused")
    gone, bad = session.ret("ibv_wr_abort"), session.ret("ibv_wr_complete")
    tap.equal((status, [w["wr_id"] for w in gone["args"]["wr"]], gone["ok"]),
              (0, [1], True), "abort: what is given up")
    tap.equal(([w["wr_id"] for w in bad["args"]["wr"]], bad["ok"],
               bad["err"] == bad["ret"] != 0), ([2], False, True),
              "complete: refused, with what was asked")
    session = peer.Peer(PROGRAM, "refused")
    session.stop()
    at = session.go("until ibv_wr_abort")
    tap.equal(at["call"], "ibv_wr_abort", "until a verb of an object")
    at = session.go("until fail")
    tap.equal((session.events[-2]["call"], at["call"]),
              ("ibv_wr_complete", "ibv_destroy_qp"), "until fail: after it")
    session.finish()
    session = peer.Peer(PROGRAM, "wrong_key")
    session.stop()
    at = session.go("until fail")
    poll = rets(session, "ibv_start_poll")[-1]
    tap.equal((at["call"], [(w["wr_id"], w["status"])
                            for w in poll["out"]["wc"]]),
              ("ibv_next_poll", [(9, "IBV_WC_REM_ACCESS_ERR")]),
              "until fail: a completion with an error is one")
    tap.equal(set(poll["out"]["wc"][0]),
              {"wr_id", "status", "qp_num", "vendor_err"},
              "and has no more than it means")
    session.finish()


def counted():
    session, status = run("loop", "run")
    total = {call: sum(e["count"] for e in rets(session, call))
             for call in ("ibv_wr_complete", "ibv_post_recv")}
    tap.equal((status, total),
              (0, {"ibv_wr_complete": 1000, "ibv_post_recv": 1000}),
              "run: every batch is counted")
    tap.ok(len(session.events) < 300, "run: in bulk", len(session.events))
    polls = sum(e["count"] for call in ("ibv_start_poll", "ibv_next_poll")
                for e in rets(session, call) if e["ret"] == 0)
    tap.equal(polls, 2000, "run: and every completion")
    tap.ok(not set(session.calls("enter")) &
           {"ibv_wr_complete", "ibv_start_poll", "ibv_end_poll"},
           "run: they are not entered")
    session, status = run("many", "run")
    args = session.ret("ibv_wr_complete")["args"]
    tap.equal((status, len(args["wr"]) + args["more"]), (0, 1000),
              "many: the WRs that are shown and the rest")
    session, status = run("again", "run")
    wr = [e["args"]["wr"] for e in rets(session, "ibv_wr_abort")]
    tap.equal((status, [w[0]["wr_id"] for w in wr]), (0, list(range(100))),
              "a QP at the address of another: seen as well")


def windows():
    session, status = run("window")
    bind, undo = (e["args"]["wr"] for e in rets(session, "ibv_post_send"))
    tap.equal((status, bind[0]["opcode"], bind[0]["bind_mw.mw"],
               bind[0]["bind_mw.bind_info.mr"],
               bind[0]["bind_mw.bind_info.length"]),
              (0, "IBV_WR_BIND_MW", "mw0", "mr0", 512),
              "post_send: the window that is bound")
    tap.equal((undo[0]["opcode"], undo[0]["invalidate_rkey"]),
              ("IBV_WR_LOCAL_INV", bind[0]["bind_mw.rkey"]),
              "post_send: the key that is invalidated")


def valgrind():
    if not shutil.which("valgrind") or "asan" in peer.preload():
        tap.ok(True, "valgrind # SKIP none, or a sanitizer is there")
        return
    for case in ("batch", "refused", "many", "again"):
        session = peer.Peer(PROGRAM, case, env={"VERBPROBE_FOLLOW": "1"},
                            wrap=["valgrind", "-q", "--leak-check=full",
                                  "--error-exitcode=9"])
        tap.equal((session.finish(), session.err), (0, ""),
                  f"valgrind: nothing to say of {case}")
        tap.ok(len(session.calls()) > 10, "and it was probed")


if run("again", "run")[1] == 77:
    peer.skip_all("the device has no extended objects")
completed(batch("stop"))
batch("run")
refused()
counted()
windows()
valgrind()
tap.done()
