/* SPDX-License-Identifier: MIT */
/*
 * Writes the seeds of fuzz_packet: what a sender of ours writes into a ring,
 * one file for each kind of packet and a few for messages of several, each
 * with work posted before it. Run it again when that fuzzer reads its input
 * differently.
 *
 *   build/fuzz/tests/fuzz/seeds FOLDER
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/soft/ring.h"

/* As fuzz_packet reads them: the first byte of a step, of six QPs. */
enum { SEND = 0, RECEIVE = 6, LANE = 12, DELIVER = 18 };
enum { RC, RC_SRQ, UC, UC_SRQ, UD, UD_SRQ };
#define HELP_ALL 0xff

static const char *folder;

static FILE *begin(const char *name)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	if (!file) {
		perror(path);
		exit(1);
	}
	return file;
}

static void put(FILE *file, int byte)
{
	fputc(byte, file);
}

static void receive(FILE *file, int qp, int size)
{
	put(file, RECEIVE + qp);
	put(file, size);
}

static void send_it(FILE *file, int qp, int how, int size)
{
	put(file, SEND + qp);
	put(file, how);
	put(file, size);
}

static void deliver(FILE *file, int qp, const struct soft_packet *p)
{
	struct soft_record r;

	soft_record_make(&r, p);
	put(file, DELIVER + qp);
	put(file, HELP_ALL);
	fwrite(&r, sizeof(r), 1, file);
}

static struct soft_packet packet(enum soft_op op, uint32_t length)
{
	return (struct soft_packet){
		.op = op,
		.first = true,
		.last = true,
		.ack_req = true,
		.mtu = 1024,
		.count = length ? (length - 1) / 1024 + 1 : 1,
		.length = length,
		.dma_length = length,
		.swap_add = 5,
		.syndrome = SOFT_SYN_ACK,
		.qkey = 0x11,
	};
}

static void requests(void)
{
	static const char *const names[] = { "send", "write", "read", "compare",
					     "add" };
	char name[64];

	for (int op = SOFT_OP_SEND; op <= SOFT_OP_FETCH_ADD; op++) {
		for (int qp = RC; qp <= UD_SRQ; qp++) {
			uint32_t length = op == SOFT_OP_READ ? 0 : 3000;
			struct soft_packet p =
				packet((enum soft_op)op, op > SOFT_OP_READ ? 0
							 : qp >= UD        ? 500
								    : length);
			FILE *file;

			snprintf(name, sizeof(name), "%s-%d", names[op], qp);
			file = begin(name);
			receive(file, qp, 200);
			receive(file, qp, 1);
			if (op == SOFT_OP_READ)
				p.dma_length = 3000;
			deliver(file, qp, &p);
			p.has_imm = op <= SOFT_OP_WRITE;
			p.solicited = p.has_imm;
			deliver(file, qp, &p);
			fclose(file);
		}
	}
}

/* What answers work that was posted: READ, SEND, an atomic. */
static void answers(void)
{
	static const uint8_t syndromes[] = {
		SOFT_SYN_ACK,     SOFT_SYN_RNR | 5, SOFT_NAK_SEQUENCE,
		SOFT_NAK_REQUEST, SOFT_NAK_ACCESS,  SOFT_NAK_OPERATION,
	};
	struct soft_packet p = packet(SOFT_OP_READ_RESPONSE, 970);
	FILE *file = begin("read-response");

	send_it(file, RC, 2, 10);
	deliver(file, RC, &p);
	fclose(file);
	file = begin("atomic-ack");
	send_it(file, RC, 3 | 64, 0);
	p = packet(SOFT_OP_ATOMIC_ACK, 8);
	deliver(file, RC, &p);
	fclose(file);
	for (unsigned int i = 0; i < sizeof(syndromes); i++) {
		char name[64];

		snprintf(name, sizeof(name), "ack-%02x", syndromes[i]);
		file = begin(name);
		for (int n = 0; n < 3; n++)
			send_it(file, RC, n, 30);
		p = packet(SOFT_OP_ACK, 0);
		p.syndrome = syndromes[i];
		deliver(file, RC, &p);
		fclose(file);
	}
}

/* First, middle and last, of a SEND and a WRITE; and the last one missing. */
static void messages(void)
{
	for (int op = SOFT_OP_SEND; op <= SOFT_OP_WRITE; op++) {
		struct soft_packet p = packet((enum soft_op)op, 2048);
		FILE *file = begin(op ? "write-pieces" : "send-pieces");

		receive(file, RC, 255);
		p.dma_length = 6144;
		p.last = false;
		deliver(file, RC, &p);
		p.first = false;
		deliver(file, RC, &p);
		p.last = true;
		deliver(file, RC, &p);
		p.first = true;
		p.last = false;
		deliver(file, RC, &p);
		p.last = true;
		deliver(file, RC, &p);
		fclose(file);
	}
}

/* Indexes of a lane, and a record in it. */
static void lanes(void)
{
	struct soft_packet p = packet(SOFT_OP_SEND, 300);
	uint32_t indexes[2] = { 512, 0 };
	FILE *file = begin("lane");
	struct soft_record r;

	soft_record_make(&r, &p);
	put(file, LANE);
	fwrite(indexes, sizeof(indexes), 1, file);
	fwrite(&r, sizeof(r), 1, file);
	fclose(file);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: seeds FOLDER\n");
		return 2;
	}
	folder = argv[1];
	requests();
	answers();
	messages();
	lanes();
	return 0;
}
