/* SPDX-License-Identifier: MIT */
/*
 * Markdown to plain text for a terminal. md4c parses; what is here gathers
 * the text of a block and lays it out when the block ends. Tables: table.c.
 */
#include "words.h"
#include "internal.h"

#include <md4c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LISTS   8
#define CODE_INDENT 4

struct render {
	struct text out;
	struct text block; /* of the block that is being read */
	int columns;
	int lists;              /* depth */
	int numbers[MAX_LISTS]; /* the next number; 0 in unordered lists */
	bool item_begun;        /* an item's mark is still to be written */
	struct table *table;    /* that is being read, or NULL */
};

static void separate(struct render *render)
{
	if (render->out.length)
		text_puts(&render->out, "\n");
}

/* What a block's first line starts with: an item's mark, or its indent. */
static void block_indent(struct render *render, char *buffer, size_t size)
{
	int depth = render->lists < MAX_LISTS ? render->lists : MAX_LISTS;
	int spaces = 2 * (depth - 1);

	if (!depth)
		buffer[0] = '\0';
	else if (!render->item_begun)
		snprintf(buffer, size, "%*s", spaces + 2, "");
	else if (render->numbers[depth - 1])
		snprintf(buffer, size, "%*s%d. ", spaces, "",
			 render->numbers[depth - 1]++);
	else
		snprintf(buffer, size, "%*s- ", spaces, "");
	render->item_begun = false;
}

/* Writes the text gathered so far, as a paragraph or an item. */
static void flush_block(struct render *render)
{
	char first[2 * MAX_LISTS + 32];

	if (!render->block.length)
		return;
	if (!render->lists)
		separate(render);
	block_indent(render, first, sizeof(first));
	text_wrap(&render->out, render->block.data, render->block.length, first,
		  render->columns);
	text_clear(&render->block);
}

/* Code is written as it is, line by line, indented. */
static void flush_code(struct render *render)
{
	const char *line = render->block.data;
	int indent = CODE_INDENT + 2 * render->lists;

	if (!render->block.length)
		return;
	if (!render->lists)
		separate(render);
	while (*line) {
		size_t length = strcspn(line, "\n");

		if (length)
			text_spaces(&render->out, indent);
		text_put(&render->out, line, length);
		text_puts(&render->out, "\n");
		line += length + (line[length] == '\n');
	}
	text_clear(&render->block);
}

static void enter_list(struct render *render, int number)
{
	if (!render->lists)
		separate(render);
	if (render->lists < MAX_LISTS)
		render->numbers[render->lists] = number;
	render->lists++;
}

static int enter_block(MD_BLOCKTYPE type, void *detail, void *data)
{
	struct render *render = data;
	const MD_BLOCK_OL_DETAIL *ordered = detail;

	if (type != MD_BLOCK_TD && type != MD_BLOCK_TH)
		flush_block(render);
	if (type == MD_BLOCK_UL)
		enter_list(render, 0);
	else if (type == MD_BLOCK_OL)
		enter_list(render, (int)ordered->start);
	else if (type == MD_BLOCK_LI)
		render->item_begun = true;
	else if (type == MD_BLOCK_TABLE)
		render->table = table_new();
	else if (type == MD_BLOCK_TR && render->table)
		table_row(render->table);
	return type == MD_BLOCK_TABLE && !render->table;
}

static int leave_block(MD_BLOCKTYPE type, void *detail, void *data)
{
	struct render *render = data;

	(void)detail;
	switch (type) {
	case MD_BLOCK_CODE:
	case MD_BLOCK_HTML:
		flush_code(render);
		break;
	case MD_BLOCK_UL:
	case MD_BLOCK_OL:
		flush_block(render);
		render->lists--;
		break;
	case MD_BLOCK_TH:
	case MD_BLOCK_TD:
		table_cell(render->table, &render->block);
		break;
	case MD_BLOCK_TABLE:
		separate(render);
		table_write(render->table, &render->out, render->columns);
		table_free(render->table);
		render->table = NULL;
		break;
	default:
		if (!render->table)
			flush_block(render);
	}
	return 0;
}

static int ignore_span(MD_SPANTYPE type, void *detail, void *data)
{
	(void)type;
	(void)detail;
	(void)data;
	return 0;
}

static void put_entity(struct text *text, const char *data, size_t length)
{
	static const struct {
		const char *name, *text;
	} known[] = {
		{ "&amp;", "&" },   { "&lt;", "<" },   { "&gt;", ">" },
		{ "&quot;", "\"" }, { "&nbsp;", " " },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strlen(known[i].name) == length &&
		    !strncmp(known[i].name, data, length)) {
			text_puts(text, known[i].text);
			return;
		}
	text_put(text, data, length);
}

static int add_text(MD_TEXTTYPE type, const MD_CHAR *data, MD_SIZE size,
		    void *user)
{
	struct text *block = &((struct render *)user)->block;

	if (type == MD_TEXT_BR || type == MD_TEXT_SOFTBR)
		text_puts(block, "\n");
	else if (type == MD_TEXT_ENTITY)
		put_entity(block, data, size);
	else if (type != MD_TEXT_NULLCHAR)
		text_put(block, data, size);
	return 0;
}

char *words_render(const struct words_section *section, int columns)
{
	static const MD_PARSER parser = {
		.flags = MD_FLAG_TABLES | MD_FLAG_NOINDENTEDCODEBLOCKS |
			 MD_FLAG_NOHTML,
		.enter_block = enter_block,
		.leave_block = leave_block,
		.enter_span = ignore_span,
		.leave_span = ignore_span,
		.text = add_text,
	};
	struct render render = { .columns = columns };
	int err;

	text_puts(&render.out, "");
	err = md_parse(section->markdown, (MD_SIZE)strlen(section->markdown),
		       &parser, &render);
	table_free(render.table);
	if (render.out.failed || render.block.failed)
		err = -1;
	text_free(&render.block);
	if (err) {
		text_free(&render.out);
		return NULL;
	}
	return render.out.data;
}
