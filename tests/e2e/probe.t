#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the probe says about small verbs programs, and what it obeys."""
import os
import select
import shutil
import signal

import peer

HELLO = os.path.join(peer.BUILD, "tests/programs/hello_verbs")
CASES = os.path.join(peer.BUILD, "tests/programs/probe_cases")
tap = peer.Tap()


def hello_stepped():
    session = peer.Peer(HELLO)
    status = session.finish()
    events = session.events
    tap.equal((status, session.out), (0, "hello\n"), "hello: runs as alone")
    tap.equal([events[0]["ev"], events[0]["pid"], events[-1]["ev"]],
              ["hello", session.child.pid, "bye"], "hello first, bye last")
    tap.ok(events[0]["exe"].endswith("/hello_verbs"), "hello names the program")
    tap.ok(all(e["stop"] for e in events if e["ev"] == "enter"),
           "stepped: every enter stops")
    seqs = sorted({e["seq"] for e in events if "seq" in e})
    tap.equal(seqs, list(range(1, len(seqs) + 1)),
              "seq counts from 1, without a gap")
    for e in events:
        if e["ev"] == "enter":
            ret = [r for r in events if r["ev"] == "ret"
                   and r["seq"] == e["seq"]]
            if len(ret) != 1 or ret[0]["args"] != e["args"] \
                    or ret[0]["at"] != e["at"]:
                tap.ok(False, "an enter and its ret belong together", e, ret)
    polls = [c for c in session.calls("enter") if c == "ibv_poll_cq"]
    others = [c for c in session.calls("enter") if c != "ibv_poll_cq"]
    tap.equal(others, [
        "ibv_get_device_list", "ibv_open_device", "ibv_free_device_list",
        "ibv_query_port", "ibv_query_gid", "ibv_alloc_pd", "ibv_reg_mr",
        "ibv_dealloc_pd", "ibv_create_cq", "ibv_create_qp", "ibv_create_qp",
        *["ibv_modify_qp"] * 6, "ibv_post_recv", "ibv_post_send",
        "ibv_destroy_qp", "ibv_destroy_qp", "ibv_destroy_cq", "ibv_dereg_mr",
        "ibv_dealloc_pd", "ibv_close_device"], "hello: the calls in order")
    tap.ok(1 <= len(polls) <= 4, "hello: polls are a few steps", polls)
    return session


def hello_values(session):
    made = {c: session.ret(c)["ret"] for c in
            ("ibv_open_device", "ibv_alloc_pd", "ibv_reg_mr", "ibv_create_cq",
             "ibv_create_qp")}
    tap.equal(made, {"ibv_open_device": "ctx0", "ibv_alloc_pd": "pd0",
                     "ibv_reg_mr": "mr0", "ibv_create_cq": "cq0",
                     "ibv_create_qp": "qp0"}, "objects by their ids")
    tap.equal(session.ret("ibv_create_qp", 1)["ret"], "qp1", "and a second")
    busy = session.ret("ibv_dealloc_pd")
    tap.equal((busy["ok"], busy["ret"], busy["err"], busy["out"]),
              (False, 16, 16, {}), "EBUSY is told")
    create = session.ret("ibv_create_qp")
    wanted = {"pd": "pd0", "send_cq": "cq0", "recv_cq": "cq0", "srq": None,
              "cap.max_send_wr": 4, "qp_type": "IBV_QPT_RC", "sq_sig_all": 0}
    tap.equal({k: create["args"].get(k) for k in wanted}, wanted,
              "create_qp: the structure flattened")
    tap.ok(create["out"]["cap.max_send_wr"] >= 4 and
           create["out"]["state"] == "IBV_QPS_RESET" and
           create["out"]["qp_num"] > 0, "create_qp: what was given", create)
    states = [e["out"].get("state") for e in session.events
              if e["ev"] == "ret" and e["call"] == "ibv_modify_qp"]
    tap.equal(states, ["IBV_QPS_INIT", "IBV_QPS_RTR", "IBV_QPS_RTS"] * 2,
              "modify_qp: the state after it")
    init = session.ret("ibv_modify_qp")["args"]
    tap.equal(list(init), ["qp", "qp_state", "pkey_index", "port_num",
                           "qp_access_flags", "attr_mask"],
              "modify_qp: only what the mask names")
    rtr = session.ret("ibv_modify_qp", 1)["args"]
    peer_qp = session.ret("ibv_create_qp", 1)["out"]["qp_num"]
    tap.equal((rtr["dest_qp_num"], rtr["path_mtu"], rtr["ah_attr.grh.dgid"]),
              (peer_qp, "IBV_MTU_1024", session.ret("ibv_query_gid")
               ["out"]["gid"]), "modify_qp: numbers, names, the GID")
    wc = [w for e in session.events if e["ev"] == "ret"
          and e["call"] == "ibv_poll_cq" for w in e["out"]["wc"]]
    tap.equal(sorted((w["wr_id"], w["status"], w["opcode"]) for w in wc),
              [(1, "IBV_WC_SUCCESS", "IBV_WC_RECV"),
               (2, "IBV_WC_SUCCESS", "IBV_WC_SEND")], "both completions")
    send = session.ret("ibv_post_send")["args"]["wr"]
    tap.equal((len(send), send[0]["opcode"], send[0]["send_flags"],
               send[0]["sg_list"][0]["length"],
               send[0]["sg_list"][0]["lkey"]),
              (1, "IBV_WR_SEND", "IBV_SEND_SIGNALED", 6,
               session.ret("ibv_reg_mr")["out"]["lkey"]), "post_send: its WR")


def run_mode():
    session = peer.Peer(HELLO, start="run")
    status = session.finish()
    tap.equal(status, 0, "run: to the end")
    tap.ok(not any(e.get("stop") for e in session.events), "run: no stop")
    entered = set(session.calls("enter"))
    tap.ok("ibv_create_qp" in entered and not entered &
           {"ibv_poll_cq", "ibv_post_send", "ibv_post_recv"},
           "run: the data path is not entered", entered)
    posts = [e for e in session.events if e["ev"] == "ret"
             and e["call"] == "ibv_post_send"]
    tap.equal([e["count"] for e in posts], [1], "run: but reported")


def polls():
    session = peer.Peer(CASES, "polls")
    status = session.finish()
    entered = [e for e in session.events if e["ev"] == "enter"
               and e["call"] == "ibv_poll_cq"]
    rets = [e for e in session.events if e["ev"] == "ret"
            and e["call"] == "ibv_poll_cq"]
    tap.equal((status, len(entered)), (0, 2),
              "two loops of empty polls stop once each")
    tap.equal(sum(e["count"] for e in rets), 2000, "and all are counted")
    tap.ok(len({e["seq"] for e in rets}) == 2, "under two seqs", len(rets))
    session = peer.Peer(CASES, "polls", start="run")
    session.finish()
    rets = [e for e in session.events if e["ev"] == "ret"
            and e["call"] == "ibv_poll_cq"]
    tap.ok(sum(e["count"] for e in rets) == 2000 and len(rets) < 30,
           "run: counted in bulk", rets)


def refusals():
    session = peer.Peer(CASES, "refusals", start="run")
    status = session.finish()
    posts = [e for e in session.events if e["ev"] == "ret"
             and e["call"] == "ibv_post_send"]
    tap.equal((status, sum(e["count"] for e in posts), len(posts) < 10),
              (0, 500, True), "run: a refusal in a loop is counted")
    tap.equal((posts[0]["ok"], posts[0]["err"], posts[0]["out"]),
              (False, 22, {"bad_wr": 0}), "and says which WR")
    session = peer.Peer(CASES, "refusals")
    session.stop()
    at = session.go("until fail")
    posts = [e for e in session.events if e["ev"] == "ret"
             and e["call"] == "ibv_post_send"]
    tap.equal((at["call"], sum(e["count"] for e in posts)),
              ("ibv_post_send", 1), "until fail: after the first")
    session.say("run")
    while session.read():
        pass


def until():
    session = peer.Peer(CASES, "refused")
    session.stop()
    at = session.go("until ibv_reg_mr")
    tap.equal((at["call"], at["stop"]), ("ibv_reg_mr", True), "until a verb")
    at = session.go("until fail")
    before = session.events[-2]
    tap.equal((before["call"], before["ok"], at["call"]),
              ("ibv_dealloc_pd", False, "ibv_reg_mr"), "until fail: after it")
    at = session.go()
    tap.equal(session.events[-2]["err"], 22, "a NULL answer has its errno")
    tap.equal(session.events[-2]["ret"], None, "and is null")
    session.say("run")
    while session.read():
        pass
    tap.equal(session.child.wait(timeout=60), 0, "errno is the program's own")

    session = peer.Peer(CASES, "marks")
    session.stop()
    at = session.go("until mark")
    tap.equal((at["ev"], at["id"], at["at"]["file"]),
              ("mark", "first", "tests/programs/probe_cases.c"), "until mark")
    tap.equal(session.go("until mark")["id"], "second", "and the next")
    tap.equal(session.go()["call"], "ibv_dealloc_pd", "go from a mark")
    tap.equal(session.finish(), 0, "and on to the end")

    session = peer.Peer(CASES, "many")
    session.stop()
    at = session.go("until fail")
    polled = [e for e in session.events if e.get("call") == "ibv_poll_cq"
              and e["ev"] == "ret"]
    tap.equal((at["call"], polled[-1]["out"]["wc"][0]["status"]),
              ("ibv_destroy_qp", "IBV_WC_WR_FLUSH_ERR"),
              "until fail: a completion with an error is one")
    session.finish()


def long_lists():
    session = peer.Peer(CASES, "many", start="run")
    status = session.finish()
    post = session.ret("ibv_post_recv")
    poll = [e for e in session.events if e["ev"] == "ret"
            and e["call"] == "ibv_poll_cq" and e["ret"] > 0][0]
    tap.equal(status, 0, "many: runs")
    tap.ok(all(len(line) < 65536 for line in session.lines),
           "many: no line is too long")
    tap.equal(len(post["args"]["wr"]) + post["args"]["more"], 600,
              "many: the WRs that are shown and the rest")
    tap.equal(len(poll["out"]["wc"]) + poll["out"].get("more", 0),
              poll["ret"], "many: the completions too")
    tap.equal(post["args"]["wr"][0]["wr_id"], "0xffffffffffffffff",
              "a number beyond 63 bits is a text")


def pause():
    session = peer.Peer(CASES, "forever")
    session.stop()
    session.say("run")
    session.child.stdout.readline()
    session.say("pause")
    at = session.stop()
    tap.equal((at["ev"], at["call"]), ("enter", "ibv_poll_cq"), "pause: stops")
    session.say("go")  # an empty poll: it stops no more by itself
    session.say("pause")
    at = session.stop()
    tap.equal((at["ev"], at["call"]), ("enter", "ibv_poll_cq"),
              "pause: also a loop of polls that is stepped")
    session.child.send_signal(signal.SIGKILL)
    session.child.wait()
    tap.ok(session.read() is None, "killed: the conversation ends")
    session = peer.Peer(CASES, "crash", start="run")
    status = session.finish()
    tap.equal((status, session.events[-1]["ev"] != "bye"),
              (-signal.SIGABRT, True), "a crash says no bye")


def pause_in_a_call():
    session = peer.Peer(CASES, "waits")
    session.stop()
    session.go("until ibv_get_cq_event")
    session.say("run")
    # Nothing can be paused now: the call stops nobody until it is back.
    session.say("pause")
    tap.ok(not select.select([session.socket], [], [], 0.1)[0],
           "pause: a call that blocks is not stopped")
    session.child.send_signal(signal.SIGUSR1)
    at = session.stop()
    tap.ok(at["ev"] == "enter" and at["stop"], "pause: the next call is", at)
    tap.equal(session.finish(), 0, "pause: and on to the end")
    event = session.ret("ibv_get_cq_event")
    tap.equal((event["ok"], event["out"]["cq"]), (True, "cq0"),
              "pause: the call came back with its event")


def until_never():
    """A verb that is never called; one that the probe does not know."""
    for verb in ("ibv_create_ah", "ibv_wr_send", "ibv_no_such_verb"):
        session = peer.Peer(CASES, "polls")
        session.stop()
        tap.equal((session.go("until " + verb), session.finish()), (None, 0),
                  f"until {verb}: runs to the end")
        tap.equal((session.events[-1]["ev"], sum(
            e["count"] for e in session.events if e["ev"] == "ret"
            and e["call"] == "ibv_poll_cq")), ("bye", 2000),
                  f"until {verb}: and reports all of it")


def left_by_others():
    for start in ("run", "stop"):
        session = peer.Peer(CASES, "leftover", start=start)
        status = session.finish()
        count = {}
        for e in session.events:
            if e["ev"] == "ret" and e["call"] == "ibv_poll_cq":
                cq = e["args"]["cq"]
                count[cq] = count.get(cq, 0) + e["count"]
        tap.equal((status, count.get("cq0"), count.get("cq1")),
                  (0, 1000, 1000),
                  f"{start}: what other threads counted is told at the end")
        tap.ok(count.get("cq2", 0) > 0 and session.events[-1]["ev"] == "bye",
               f"{start}: also of one that goes on polling", count)


def alone(session):
    """No other thread stops while one is stopped: as far as 20 ms show."""
    if session.text or select.select([session.socket], [], [], 0.02)[0]:
        while True:
            event = session.read()
            if event.get("stop"):
                return False
            if not session.text and not select.select(
                    [session.socket], [], [], 0.02)[0]:
                return True
    return True


def many_threads():
    session = peer.Peer(CASES, "threads")
    session.stop()
    session.go("until ibv_dealloc_pd")
    quiet = True
    for _ in range(20):
        quiet = quiet and alone(session)
        session.go()
    tap.ok(quiet, "threads: one is stopped at a time")
    session.say("go")
    while (event := session.stop()) is not None:
        session.say("go")
    status = session.child.wait(timeout=60)
    tap.equal(status, 0, "threads: stepped to the end")
    allocs = [e["ret"] for e in session.events if e["ev"] == "ret"
              and e["call"] == "ibv_alloc_pd"]
    tap.equal(sorted(int(i[2:]) for i in allocs), list(range(101)),
              "threads: each PD its own id, never one twice")
    tids = {e["tid"] for e in session.events if "tid" in e}
    tap.equal(len(tids), 5, "threads: told apart")
    session = peer.Peer(CASES, "blocked")
    status = session.finish()
    event = session.ret("ibv_get_cq_event")
    tap.equal((status, event["out"]["cq"]), (0, "cq0"),
              "a call that blocks does not hold up the others")


def children():
    session = peer.Peer(CASES, "forks", start="run")
    status = session.finish()
    tap.equal(status, 0, "fork: the parent goes on")
    tap.equal(session.calls().count("ibv_get_device_list"), 1,
              "fork: the child is silent")
    first, sockets = session.out.split("\n")[:2]
    tap.ok("libverbprobe" not in first and first.endswith("fd=") and
           "libsoftverbs" in first, "exec: not probed, soft0 stays", first)
    tap.equal(sockets, "0", "exec: the socket is closed")


    session = peer.Peer(CASES, "spawns", start="run")
    tap.equal((session.finish(), session.out), (0, "0\n"),
              "spawn: nor does it get the socket")


def silence():
    """The other side leaves, talks nonsense, or was never there."""
    session = peer.Peer(CASES, "threads", start="run")
    while session.read()["ev"] != "ret":
        pass
    session.socket.close()
    out, err = session.child.communicate(timeout=60)
    tap.equal((session.child.returncode, err), (0, ""),
              "gone while it talks: no signal either")
    for name, last in (("gone", None), ("garbage", "sing!"),
                       ("binary", "\x00\x01" * 400)):
        session = peer.Peer(HELLO)
        session.stop()
        session.go()
        if last is None:
            session.socket.close()
        else:
            session.say(last)
        out, err = session.child.communicate(timeout=60)
        tap.equal((session.child.returncode, out, err), (0, "hello\n", ""),
                  f"{name}: the program never notices")
    session = peer.Peer(HELLO, env={"VERBPROBE_FD": "77"})
    out, err = session.child.communicate(timeout=60)
    tap.equal((session.child.returncode, out, err), (0, "hello\n", ""),
              "a descriptor that is none: passed through")
    session = peer.Peer(HELLO, env={"VERBPROBE_FD": ""})
    session.child.communicate(timeout=60)
    tap.equal((session.child.returncode, session.read()), (0, None),
              "without one: silent")


def valgrind():
    if not shutil.which("valgrind") or "asan" in peer.preload():
        tap.ok(True, "valgrind # SKIP none, or a sanitizer is there")
        return
    for program, *args in ((HELLO,), (CASES, "many"), (CASES, "threads")):
        session = peer.Peer(program, *args, env={"VERBPROBE_FOLLOW": "1"},
                            wrap=["valgrind", "-q", "--leak-check=full",
                                  "--error-exitcode=9"])
        tap.equal((session.finish(), session.err), (0, ""),
                  f"valgrind: nothing to say of {' '.join(args) or 'hello'}")
        tap.ok(len(session.calls()) > 10, "and it was probed")


def no_device():
    session = peer.Peer(HELLO, soft=False, start="run")
    status = session.finish()
    listed = session.ret("ibv_get_device_list")
    if status != 77:
        tap.ok(True, "no device # SKIP this machine has one")
        return
    tap.ok(listed["ret"] is None and not listed["ok"] and listed["err"] or
           listed["out"]["devices"] == [], "no device: told as it is", listed)


session = hello_stepped()
hello_values(session)
run_mode()
polls()
refusals()
until()
long_lists()
pause()
pause_in_a_call()
until_never()
left_by_others()
many_threads()
children()
silence()
valgrind()
no_device()
tap.done()
