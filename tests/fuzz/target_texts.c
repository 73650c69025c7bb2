/* target_texts.c - for libFuzzer: the text files that the example programs read.
 *
 * An input is two texts that end with a NUL, and a file. The two texts name the columns of a table
 * (kernel_regression --x --y); the first text is also a prompt (charlm --prompt) and a list of
 * words (pronounce --show). Each reader must accept the file or set one error message. A file that
 * is accepted is then used. */
#include "common.h"

#include "../../examples/charlm/corpus.h"
#include "../../examples/kernel_regression/csv.h"
#include "../../examples/kernel_regression/sample.h"
#include "../../examples/charlm/trigram.h"
#include "../../examples/common/utf8.h"
#include "../../examples/pronounce/dictionary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static MemoryFile file;

/* ---- tables -------------------------------------------------------------------------------- */

static void try_table(const char *const column[2]) {
    static char error[CSV_ERROR_SIZE];
    CsvTable table;
    if (csv_read(file.path, column, 2, &table, error)) {
        for (int64_t i = 0; i < 2 * table.num_rows; i++)
            if (!isfinite(table.column[i % 2][i / 2])) fault("a cell is no finite number");
        for (int i = 0; i < 2; i++) csv_write_cell(nowhere(), table.name[i]);
    } else if (!*error) fault("a table is refused without a sentence");
    csv_free(&table);
}

static void try_sample(const char *const column[2]) {
    Sample sample;
    if (said(sample_read(&sample, file.path, column[0], column[1]))) {
        if (!(sample.x_range > 0) || !(sample.x_gap >= 0)) fault("a sample has no width");
        if (tensor_numel(sample.x) != sample.data.num_rows) fault("a sample has lost a point");
    }
    sample_free(&sample);
    tensor_set_default_dtype(F32);
}

/* ---- texts --------------------------------------------------------------------------------- */

enum { LEAST = 4, MANY_SYMBOLS = 32 };

static void try_passage(const Corpus *text, const char *prompt) {
    Passage passage = corpus_passage(text, prompt, LEAST, 1);
    if (said(!tensor_error())) {
        Tensor *x = corpus_last(&passage, LEAST);
        for (int64_t i = 0; i < tensor_numel(x); i++)
            if (tensor_get(x, 0, i) >= text->num_symbols) fault("a symbol is none of the text");
        corpus_print(text, &passage, nowhere());
        tensor_release(x);
    }
    free(passage.symbol);
}

static void try_corpus(const char *prompt) {
    Corpus text;
    if (said(corpus_read(&text, file.path, LEAST))) {
        tensor_release(corpus_vocabulary(&text));
        tensor_release(corpus_draw(&text, 3, LEAST));
        try_passage(&text, NULL);
        try_passage(&text, prompt);
        double loss = 1;
        if (text.num_symbols <= MANY_SYMBOLS) /* a table has num_symbols^3 numbers */
            loss = trigram_loss(text.symbol, text.held_out, text.size, text.num_symbols);
        said(!tensor_error());
        if (loss < -1e-9) fault("a mean of -log p is below 0");
    }
    corpus_free(&text);
}

/* Every character has at least one byte, and every column of a terminal needs at least one byte. */
static void try_characters(const char *text) {
    const size_t size = strlen(text);
    const int length = utf8_length(text), columns = utf8_text_columns(text);
    if (length < 0 || (size_t)length > size) fault("a text has more characters than bytes");
    if (columns < length || columns > 2 * length) fault("a text has a strange width");
}

/* ---- dictionaries -------------------------------------------------------------------------- */

static void try_dictionary(const char *shown) {
    Dictionary d;
    if (said(dictionary_read(&d, file.path, shown))) {
        tape_begin_no_grad();
        const Batch batch = dictionary_draw(&d, 2);
        if (tensor_numel(batch.lengths) != 2) fault("a batch has lost a word");
        for (int i = 0; i < d.num_shown; i++)
            if (d.word[d.shown[i]].part == TRAINED) fault("a shown word is trained on");
        tape_end();
    }
    dictionary_free(&d);
}

/* ---- one input ------------------------------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size) {
    static char copy[1 << 16];
    if (size + 3 > sizeof copy) return 0;
    if (!file.fd) make_file(&file);
    memcpy(copy, bytes, size);
    memset(copy + size, 0, 3);
    const char *const column[] = {copy, copy + strlen(copy) + 1};
    const size_t names = (size_t)(column[1] - copy) + strlen(column[1]) + 1;
    if (names < size) write_file(&file, copy + names, size - names);
    else write_file(&file, "", 0);
    const int64_t live = tensor_live();
    try_table(column);
    try_sample(column);
    try_corpus(column[0]);
    try_dictionary(column[0]);
    try_characters(column[0]);
    if (tensor_live() != live) fault("tensors are left over");
    return 0;
}
