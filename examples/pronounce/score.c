/* score.c - how good is a pronunciation, and where does the model look: see score.h. */
#include "score.h"

#include <string.h>

/* before[j]: the distance of the first i - 1 of a from the first j of b; now[j]: of the first i. */
int edit_distance(const uint8_t *a, int n, const uint8_t *b, int m) {
    int before[MOST_SAID + 1], now[MOST_SAID + 1];
    for (int j = 0; j <= m; j++) before[j] = j;
    for (int i = 1; i <= n; i++) {
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            now[j] = before[j - 1] + (a[i - 1] != b[j - 1]);
            if (before[j] + 1 < now[j]) now[j] = before[j] + 1;
            if (now[j - 1] + 1 < now[j]) now[j] = now[j - 1] + 1;
        }
        memcpy(before, now, sizeof before);
    }
    return before[m];
}

enum { AT_ONCE = 128 };

static void add(Tally *sum, const Tally *x) {
    sum->words += x->words;
    sum->right += x->right;
    sum->table_right += x->table_right;
    sum->sounds += x->sounds;
    sum->wrong += x->wrong;
    sum->table_wrong += x->table_wrong;
}

/* A word that does not end has SOUNDS_A_LETTER sounds for each letter. */
static void score_word(Score *score, const Word *w, const int64_t *said, const LetterTable *table) {
    uint8_t sound[MOST_SAID];
    int n = 0;
    for (; n < SOUNDS_A_LETTER * w->num_letters && said[n]; n++) sound[n] = (uint8_t)said[n];
    const int wrong = edit_distance(w->sound, w->num_sounds, sound, n);
    n = letter_table_say(table, w, sound);
    const int table_wrong = edit_distance(w->sound, w->num_sounds, sound, n);
    const Tally word = {1, wrong == 0, table_wrong == 0, w->num_sounds, wrong, table_wrong};
    add(&score->by_length[w->num_letters], &word);
    add(&score->all, &word);
}

/* weights: those of the word, a row of T for each sound. */
static void score_looks(Score *score, const Word *w, const double *weights, int64_t T,
                        const int *letter) {
    double on[WORD_MAX] = {0};
    bool says[WORD_MAX] = {false};
    int before = 0;
    for (int i = 0; i < w->num_sounds; i++) {
        const double *row = weights + i * T;
        int look = 0;
        for (int l = 0; l < w->num_letters; l++) {
            if (row[l] > row[look]) look = l;
            on[l] += row[l];
        }
        says[letter[i]] = true;
        score->agree += look == letter[i];
        score->diagonal += diagonal_letter(w, i) == letter[i];
        score->steps += i > 0;
        score->left += i > 0 && look < before;
        before = look;
    }
    for (int l = 0; l < w->num_letters; l++) {
        *(says[l] ? &score->sounding : &score->silent) += 1;
        *(says[l] ? &score->on_sounding : &score->on_silent) += on[l];
    }
}

typedef struct {
    int64_t number[AT_ONCE], said[AT_ONCE * MOST_SAID];
    double weights[AT_ONCE * WORD_MAX * (WORD_MAX + 1)];
} Room;

static void score_batch(Score *score, EncoderDecoder *net, const Dictionary *d,
                        const Alignment *alignment, const LetterTable *table, Tensor *numbers) {
    static Room room;
    const Batch batch = dictionary_batch(d, numbers);
    Tensor *weights;
    if (!tensor_to_int64s(numbers, room.number)) return;
    if (!speak(net, &batch, room.said, &weights)) return;
    encoder_decoder_forward(net, &batch, &weights);
    const int64_t S = tensor_size(batch.before, 1), T = tensor_size(batch.letters, 1);
    if (weights && !tensor_to_doubles(weights, room.weights)) return;
    for (int64_t b = 0; b < tensor_size(numbers, 0) && !tensor_error(); b++) {
        const Word *w = &d->word[room.number[b]];
        int letter[WORD_MAX];
        score_word(score, w, room.said + b * MOST_SAID, table);
        alignment_of(alignment, w, letter);
        if (weights) score_looks(score, w, room.weights + b * S * T, T, letter);
    }
}

Score score_of(EncoderDecoder *net, const Dictionary *d, const Alignment *alignment,
               const LetterTable *table, Part part) {
    Score score = {.steps = 0};
    int next = 0;
    tape_begin_no_grad();
    Tensor *numbers = dictionary_part(d, part, &next, AT_ONCE);
    while (numbers) {
        tape_begin_no_grad();
        score_batch(&score, net, d, alignment, table, numbers);
        tape_end();
        numbers = dictionary_part(d, part, &next, AT_ONCE);
    }
    tape_end();
    return score;
}
