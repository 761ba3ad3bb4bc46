/* SPDX-License-Identifier: MIT */
/*
 * The event format, version 1: what the probe and the stepper say to each
 * other over one stream socket, a line of JSON per event, a word per command.
 * docs/events.md describes it for people; the names stand only here.
 *
 * From the probe:
 *   {"v":1,"ev":"hello","pid":4711,"exe":"/path/of/program"}
 *   {"ev":"enter","seq":7,"tid":4711,"stop":true,"call":"ibv_create_cq",
 *    "args":{"context":"ctx0","cqe":16,"cq_context":null,"channel":null,
 *            "comp_vector":0},
 *    "at":{"file":"lessons/04_cq.c","line":95,"func":"main"}}
 *   {"ev":"ret","seq":7,"tid":4711,"call":"ibv_create_cq","args":{...},
 *    "ok":true,"ret":"cq0","err":0,"out":{"handle":3,"cqe":31},
 *    "count":1,"at":{...}}
 *   {"ev":"mark","seq":8,"tid":4711,"stop":true,"id":"create-cq","at":{...}}
 *   {"ev":"bye"}
 *
 * seq numbers calls and marks from 1; the enter and the ret of one call share
 * it. "args" are in the order and with the names of the manual page's
 * parameters, structures flattened ("cap.max_send_wr"). A value is an object
 * id ("pd0"), a number, a constant's or flags' name ("IBV_QPT_RC",
 * "IBV_ACCESS_LOCAL_WRITE|IBV_ACCESS_REMOTE_READ", "0" for none), a pointer
 * ("0x7f..."), a text, true, false, null, or for lists of work requests,
 * SGEs and completions an array of objects.
 * Numbers beyond 2^63-1 stand as text of their decimal digits (JSON readers
 * lose them otherwise). Names nest at most 8 deep and have under 160 bytes.
 * In the args of ibv_modify_*, only the fields that the mask names. The out
 * of ibv_create_qp and ibv_modify_qp has the QP's "state" as the library
 * keeps it ("IBV_QPS_RTR").
 * Object ids are a type's prefix (rules.h) and a number from 0, never reused.
 * "ok" is whether the call did what it was asked; "err" the errno value that
 * tells why not (0 when ok); "ret" what the call really returned, an object
 * id for a pointer; a call that returns nothing has none. "out" is what the
 * call handed back.
 * "count" > 1: that many calls of one thread at one place with one answer.
 * In "at", file is absent where there is no debug information (func is then
 * "program!function"). file is as the compiler was given it, like __FILE__;
 * where that is relative, "dir" says to which folder.
 *
 * Details: a number that a signed 64-bit integer cannot hold is a text,
 * "0xffffffffffffffff". A list that is too long for a line is cut, and
 * "more":n beside it says how many elements it lacks. A NULL structure is
 * one null under the parameter's name. "out" is {} for a call that failed
 * (but for the "bad_wr" of a post). QP states, types, MTUs and the like are
 * full names: "IBV_QPS_RTS", "IBV_QPT_RC", "IBV_MTU_1024".
 *
 * An event with "stop":true waits for a command; in run mode there is none
 * for the data path, which is reported by "ret" alone, in bulk: when another
 * call, mark or the end comes, or some time has gone by. args and out are
 * then those of the first of the counted calls. While the program stops
 * before each call, an empty poll is reported the same way: the first at a
 * place stops, the next ones neither stop nor enter. A ret whose seq has
 * been seen in a ret before adds its count to that one. So a line may come
 * later than one with a higher seq.
 *
 * To the probe, a line each, only in answer to a stop, but for PAUSE:
 *   go              do this call, stop before the next
 *   run             go on without stopping
 *   until mark      run to the next step mark
 *   until fail      run until a call fails, stop after it (see below)
 *   until NAME      run to the next call of that verb
 *   pause           stop before the next call (at any time)
 * After a failed call under "until fail" the next call or mark stops; a poll
 * that gave a completion with an error counts as failed here. In step mode
 * (at the start, and after go) marks stop as calls do. Commands that are out
 * of place are ignored; a line that is no command ends the conversation: the
 * probe goes silent and the program runs on.
 */
#ifndef TRACE_FORMAT_H
#define TRACE_FORMAT_H

#define TRACE_VERSION 1

/* The descriptor of the socket, as a decimal number, for the probe. */
#define TRACE_FD_ENV "VERBPROBE_FD"

/*
 * How the probe starts: unset or "stop" stops before the first call, "run"
 * runs. Without TRACE_FD_ENV the probe only passes calls through.
 */
#define TRACE_START_ENV "VERBPROBE_START"

/*
 * Set: programs that the child executes are probed too, on the same socket,
 * each with a hello of its own. Only for a program that becomes another one
 * (a shell wrapper): two that speak at once would mix their answers.
 */
#define TRACE_FOLLOW_ENV "VERBPROBE_FOLLOW"

/* The longest line either side accepts, in bytes, with its newline. */
#define TRACE_LINE_MAX 65536

#define TRACE_CMD_GO    "go"
#define TRACE_CMD_RUN   "run"
#define TRACE_CMD_UNTIL "until"
#define TRACE_CMD_PAUSE "pause"

#endif
