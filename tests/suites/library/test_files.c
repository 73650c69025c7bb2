/* test_files.c - .npy and safetensors: saves and loads tensors, loads files of NumPy and of
 * Python's safetensors, invalid files, and writes to disks that fail.
 *
 * tests/golden/files/ holds files that NumPy and Python's safetensors wrote
 * (tests/golden/generate_files.py). Each test runs in a new folder, which must contain only the
 * files that the test expects. */
#include "../common.h"

#include "../../../nn/nn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the frame: a folder, and no descriptor left open --------------------------------------- */

static char folder[] = "/tmp/tapehead-files-XXXXXX", home[4096];
static int descriptors_before;

/* The number of entries of a folder without "." and ".."; with `removing`, each is removed. */
static int entries(const char *path, bool removing) {
    int n = 0;
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (removing) ck_assert_int_eq(remove(entry->d_name), 0);
        n++;
    }
    closedir(dir);
    return n;
}

/* How many descriptors are open; 0 if there is no /proc. */
static int open_descriptors(void) {
    return access("/proc/self/fd", F_OK) == 0 ? entries("/proc/self/fd", false) : 0;
}

static void setup(void) {
    frame_setup_float();
    ck_assert_ptr_nonnull(getcwd(home, sizeof home));
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    descriptors_before = open_descriptors();
}

static void teardown(void) {
    ck_assert_int_eq(open_descriptors(), descriptors_before);
    entries(".", true);
    ck_assert_int_eq(chdir(home), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    frame_teardown();
}

/* ---- files as bytes ------------------------------------------------------------------------- */

typedef struct {
    char bytes[4096];
    size_t size;
} Bytes;

static Bytes slurp(const char *path) {
    Bytes all;
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    all.size = fread(all.bytes, 1, sizeof all.bytes, file);
    ck_assert_int_lt(all.size, sizeof all.bytes);
    fclose(file);
    return all;
}

static void spit(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static const char *golden(const char *name) {
    return format("%s/tests/golden/files/%s", home, name);
}

static void expect_same_bytes(const char *a, const char *b) {
    Bytes x = slurp(a), y = slurp(b);
    ck_assert_int_eq(x.size, y.size);
    ck_assert_msg(!memcmp(x.bytes, y.bytes, x.size), "%s and %s differ", a, b);
}

/* ---- tensors to save ------------------------------------------------------------------------ */

/* 0, 1, 2, ... in row-major order; a bool is true if 3 does not divide the number. */
static Tensor *counting(Shape shape, DType dtype) {
    bool odd[512];
    double number[512];
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++) n *= shape.dim[d];
    ck_assert_int_le(n, 512);
    for (int i = 0; i < n; i++) {
        number[i] = i;
        odd[i] = i % 3 != 0;
    }
    if (dtype == BOOL) return tensor_from_bools(shape, odd);
    Tensor *doubles = tensor_from_doubles(shape, number);
    Tensor *x = tensor_to(doubles, dtype);
    tensor_release(doubles);
    return x;
}

static void expect_equal(const char *what, const Tensor *a, const Tensor *b) {
    ck_assert_msg(a && b, "%s: %s", what, tensor_error());
    ck_assert_msg(a->dtype == b->dtype, "%s is %s", what, tensor_dtype_name(a->dtype));
    ck_assert_str_eq(tensor_shape_text(a->shape), tensor_shape_text(b->shape));
    ck_assert_msg(tensor_allclose(a, b, 0, 0), "%s has other elements", what);
}

static const Shape shapes[] = {
    {0, {0}},
    {1, {5}},
    {1, {0}},
    {2, {2, 3}},
    {3, {2, 0, 4}},
    {3, {3, 1, 4}},
    {8, {2, 1, 2, 1, 3, 1, 1, 2}},
    {8, {1, 1, 0, 1, 1, 1, 1, 7}},
};

/* View i of x: not contiguous, or expanded. NULL after the last one. */
static Tensor *view(Tensor *x, int i) {
    const int64_t m = x->shape.dim[0], n = x->shape.dim[1];
    switch (i) {
    case 0: return tensor_as_strided(x, SHAPE(n, m), (int64_t[]){1, n}, 0);       /* transposed */
    case 1: return tensor_as_strided(x, SHAPE(m, n - 1), (int64_t[]){n, 1}, 1);   /* sliced */
    case 2: return tensor_as_strided(x, SHAPE(m, n), (int64_t[]){n, -1}, n - 1);  /* turned round */
    case 3: return tensor_as_strided(x, SHAPE(3, m, n), (int64_t[]){0, n, 1}, 0); /* expanded */
    case 4: return tensor_as_strided(x, SHAPE(m), (int64_t[]){n}, 0);             /* a column */
    case 5: return tensor_as_strided(x, SCALAR, NULL, 3);                         /* an element */
    default: return NULL;
    }
}

/* ---- .npy ----------------------------------------------------------------------------------- */

static void npy_there_and_back(Tensor *x) {
    ck_assert_msg(tensor_save_npy(x, "x.npy"), "%s", tensor_error());
    Tensor *y = tensor_load_npy("x.npy");
    expect_equal("what came back", y, x);
    ck_assert(tensor_is_contiguous(y));
    tensor_release(y);
}

CASE("npy", .setup = setup, .teardown = teardown)
TEST(npy_round_trips) {
    for (DType dtype = F32; dtype <= BOOL; dtype++) {
        for (int i = 0; i < COUNT(shapes); i++) {
            Tensor *x = counting(shapes[i], dtype);
            npy_there_and_back(x);
            tensor_release(x);
        }
        Tensor *x = counting(SHAPE(4, 5), dtype);
        Tensor *v = view(x, 0);
        for (int i = 1; v; i++) {
            npy_there_and_back(v);
            tensor_release(v);
            v = view(x, i);
        }
        tensor_release(x);
    }
    ck_assert_int_eq(entries(".", false), 1);
}

/* Compares bit patterns; a comparison of numbers would not see NaN and -0. */
TEST(npy_keeps_every_bit) {
    const double odd[] = {(double)NAN, -(double)NAN, (double)INFINITY, -(double)INFINITY, -0.0,
                          5e-324,      1e308};
    const int64_t wide[] = {INT64_MIN, INT64_MAX, -1, (1LL << 53) + 1};
    tensor_set_default_dtype(F64);
    Tensor *x = tensor_from_doubles(SHAPE(7), odd);
    Tensor *n = tensor_from_int64s(SHAPE(4), wide);
    ck_assert(tensor_save_npy(x, "x.npy") && tensor_save_npy(n, "n.npy"));
    Tensor *y = tensor_load_npy("x.npy");
    Tensor *m = tensor_load_npy("n.npy");
    ck_assert(y && m && !memcmp(y->data, odd, sizeof odd) && !memcmp(m->data, wide, sizeof wide));
    RELEASE(x, n, y, m);
}

static const struct {
    const char *name;
    DType dtype;
    Shape shape;
    bool ours; /* do we write the same bytes? */
} npy_golden[] = {
    {"float32.npy", F32, {2, {2, 3}}, true},
    {"float64.npy", F64, {2, {2, 3}}, true},
    {"int64.npy", I64, {2, {2, 3}}, true},
    {"bool.npy", BOOL, {2, {2, 3}}, true},
    {"scalar.npy", F32, {0, {0}}, true},
    {"empty.npy", F64, {3, {3, 0, 2}}, true},
    {"eight.npy", I64, {8, {1, 2, 1, 1, 3, 1, 1, 1}}, true},
    {"long.npy", BOOL, {1, {70}}, true},
    {"fortran.npy", F32, {3, {2, 3, 4}}, false},
    {"fortran_bool.npy", BOOL, {2, {2, 3}}, false},
    {"big_float32.npy", F32, {2, {2, 3}}, false},
    {"big_float64.npy", F64, {2, {2, 3}}, false},
    {"big_int64.npy", I64, {2, {2, 3}}, false},
    {"version2.npy", F32, {2, {2, 3}}, false},
    {"version3.npy", F32, {2, {2, 3}}, false},
    {"float16.npy", F32, {2, {2, 3}}, false},
    {"big_float16.npy", F32, {2, {2, 3}}, false},
    {"long_sizes.npy", F32, {2, {2, 3}}, false}, /* of Python 2: (2L, 3L) */
};

LOOP_TEST(npy_is_numpys, COUNT(npy_golden)) {
    Tensor *x = counting(npy_golden[_i].shape, npy_golden[_i].dtype);
    Tensor *y = tensor_load_npy(golden(npy_golden[_i].name));
    expect_equal(npy_golden[_i].name, y, x);
    ck_assert(tensor_save_npy(x, "x.npy"));
    if (npy_golden[_i].ours) expect_same_bytes("x.npy", golden(npy_golden[_i].name));
    RELEASE(x, y);
}

/* Writes a file of version 1 with this header and `data` bytes of data, which are float32 ones. */
static void make_npy(const char *header, size_t data) {
    Bytes all = {.size = 10};
    memcpy(all.bytes, "\x93NUMPY\x01\x00", 8);
    all.bytes[8] = (char)(strlen(header) & 0xff);
    all.bytes[9] = (char)(strlen(header) >> 8);
    strcpy(all.bytes + 10, header);
    for (size_t i = 0; i < data; i++) all.bytes[10 + strlen(header) + i] = "\0\0\x80\x3f"[i % 4];
    spit("x.npy", all.bytes, 10 + strlen(header) + data);
}

TEST(npy_headers_as_python_would_read_them) {
    static const char *const header[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{\"shape\":(2,3),\"descr\":\"<f4\",\"fortran_order\":False}",
        " { 'fortran_order' :\tFalse\n,\r'shape' : ( 2 , 3 , ) , 'descr' : '=f4' , } ",
        "{'descr':'|f4','shape':(2,3),'fortran_order':True}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L,)}",
    };
    for (int i = 0; i < COUNT(header); i++) {
        make_npy(header[i], 24);
        Tensor *x = tensor_load_npy("x.npy");
        ck_assert_msg(x != NULL, "%s: %s", header[i], tensor_error());
        ck_assert_str_eq(tensor_shape_text(x->shape), "(2, 3)");
        ck_assert_int_eq(x->stride[0], i == 3 ? 1 : 3);
        ck_assert(tensor_get(x, (int64_t)1, (int64_t)2) == 1);
        tensor_release(x);
    }
}

TEST(npy_of_nothing_in_fortran_order) {
    make_npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 0, 3)}", 0);
    Tensor *x = tensor_load_npy("x.npy");
    ck_assert_msg(x != NULL, "%s", tensor_error());
    ck_assert(x->stride[0] == 1 && x->stride[1] == 2 && x->stride[2] == 2);
    tensor_release(x);
}

#define NPY(descr, order, shape)                                                                   \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape "}"
/* What is wrong at a byte of the header, with the bytes of the data, or in the entry "a". */
#define AT(byte, what)           "byte " #byte " of the header should be " what
#define NUMBER                   "a whole number from 0 to 2^63 - 1"
#define SIZE(shape, type, bytes) "shape " shape " of " type " does not take its " bytes " of data"
#define IN_A                     "\"a\": "
#define FIELDS                   "its header must have descr, fortran_order and shape, each once"

static const struct {
    const char *header;
    size_t data;
    const char *rule;
} npy_wrong[] = {
    {"", 0, AT(0, "'{'")},
    {"[]", 0, AT(0, "'{'")},
    {"{", 0, AT(1, "a string")},
    {"{}", 0, FIELDS},
    {"{'shape': (2,)}", 0, FIELDS},
    {"{'other': 1}", 0, FIELDS},
    {"{'shape': (2,), 'shape': (2,), 'fortran_order': False}", 0, FIELDS},
    {"{'shape': (), 'shape': (), 'descr': '<f4', 'fortran_order': False}", 4, FIELDS},
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4, FIELDS},
    {"{'fortran_order': False, 'fortran_order': False, 'shape': (), 'descr': '<f4'}", 4, FIELDS},
    {NPY("'<f4'", "False", "(2,)") "x", 8, AT(55, "its end")},
    {"{'descr' '<f4'}", 0, AT(9, "':'")},
    {"{'descr': '<f4' 'shape': (2,)}", 0, AT(16, "'}'")},
    {"{'descr': '<f4',, 'shape': (2,)}", 0, AT(16, "a string")},
    {"{'descr': '<f4", 0, AT(14, "the end of a string")},
    {"{\"descr", 0, AT(7, "the end of a string")},
    {"{'de\\x73cr': '<f4'}", 0, AT(5, "an escape that means a character")},
    {"{'de\nscr': '<f4'}", 0, AT(4, "escaped")},
    {NPY("4", "False", "(2,)"), 8, AT(10, "a string")},
    {NPY("'<f16'", "False", "(2,)"), 32,
     "its type is '<f16': only f2, f4, f8, i8 and b1 are read; in NumPy, save x.astype('float32')"},
    {NPY("'|u1'", "False", "(2,)"), 2,
     "its type is '|u1': only f2, f4, f8, i8 and b1 are read; in NumPy, save x.astype('int64')"},
    {NPY("''", "False", "(2,)"), 8, "its type is '': only f2, f4, f8, i8 and b1 are read"},
    {NPY("'f4'", "False", "(2,)"), 8, "its type is 'f4': only f2, f4, f8, i8 and b1 are read"},
    {NPY("'<f4x'", "False", "(2,)"), 8,
     "its type is '<f4x': only f2, f4, f8, i8 and b1 are read; in NumPy, save x.astype('float32')"},
    {NPY("'<f4'", "0", "(2,)"), 8, AT(34, "True or False")},
    {NPY("'<f4'", "Trie", "(2,)"), 8, AT(34, "True or False")},
    {"{'fortran_order': Fal", 8, AT(18, "True or False")},
    {NPY("'<f4'", "False", "2"), 8, AT(50, "'('")},
    {NPY("'<f4'", "False", "[2]"), 8, AT(50, "'('")},
    {NPY("'<f4'", "False", "(2)"), 8, AT(52, "','")},
    {NPY("'<f4'", "False", "(,)"), 8, AT(51, NUMBER)},
    {NPY("'<f4'", "False", "(2,,)"), 8, AT(53, NUMBER)},
    {NPY("'<f4'", "False", "(2, 3"), 8, AT(55, "')'")},
    {NPY("'<f4'", "False", "(-2,)"), 8, AT(51, NUMBER)},
    {NPY("'<f4'", "False", "(2.0,)"), 8, AT(52, "','")},
    {NPY("'<f4'", "False", "(02,)"), 8, AT(51, NUMBER)},
    {NPY("'<f4'", "False", "(2l,)"), 8, AT(52, "','")},
    {NPY("'<f4'", "False", "(2LL,)"), 8, AT(53, "','")},
    {NPY("'<f4'", "False", "(L,)"), 8, AT(51, NUMBER)},
    {NPY("'<f4'", "False", "(nan,)"), 8, AT(51, NUMBER)},
    {NPY("'<f4'", "False", "(9223372036854775808,)"), 8, AT(51, NUMBER)},
    {NPY("'<f4'", "False", "(99999999999999999999999,)"), 8, AT(51, NUMBER)},
    {NPY("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), 4, "there may be 0 to 8 dimensions"},
    {NPY("'<f4'", "False", "((((((((((2,),),"), 4, AT(51, NUMBER)},
    {NPY("'<f4'", "False", "(2, 3)"), 23, SIZE("(2, 3)", "float32", "23 bytes")},
    {NPY("'<f4'", "False", "(2, 3)"), 25, SIZE("(2, 3)", "float32", "25 bytes")},
    {NPY("'<f2'", "False", "(2, 3)"), 13, SIZE("(2, 3)", "float16", "13 bytes")},
    {NPY("'>f2'", "False", "(2, 3)"), 24, SIZE("(2, 3)", "float16", "24 bytes")},
    {NPY("'<f2'", "False", "(4611686018427387904,)"), 0,
     SIZE("(4611686018427387904,)", "float16", "0 bytes")},
    {NPY("'|b1'", "False", "(2, 3)"), 1, SIZE("(2, 3)", "bool", "1 byte")},
    {NPY("'|b1'", "True", "(2, 3)"), 0, SIZE("(2, 3)", "bool", "0 bytes")},
    {NPY("'<f8'", "False", "(9223372036854775807,)"), 8,
     SIZE("(9223372036854775807,)", "float64", "8 bytes")},
    {NPY("'<f8'", "False", "(4294967296, 4294967296)"), 0,
     SIZE("(4294967296, 4294967296)", "float64", "0 bytes")},
    {NPY("'<f8'", "False", "(0, 4294967296, 4294967296)"), 0,
     SIZE("(0, 4294967296, 4294967296)", "float64", "0 bytes")},
};

LOOP_TEST(npy_wrong_headers, COUNT(npy_wrong)) {
    make_npy(npy_wrong[_i].header, npy_wrong[_i].data);
    Tensor *x = tensor_load_npy("x.npy");
    ck_assert_msg(!x, "%s was read", npy_wrong[_i].header);
    expect_error(format("load_npy: x.npy: %s", npy_wrong[_i].rule));
}

/* NumPy's files of kinds that we do not load. The error message shortens their full paths. */
TEST(npy_of_other_kinds) {
    static const struct {
        const char *name, *rule;
    } wrong[] = {
        {"int32.npy",
         "its type is '<i4': only f2, f4, f8, i8 and b1 are read; in NumPy, save x.astype('int64')"},
        {"complex.npy", "its type is '<c8': only f2, f4, f8, i8 and b1 are read"},
        {"text.npy", "its type is '<U2': only f2, f4, f8, i8 and b1 are read"},
        {"record.npy", "byte 10 of the header should be a string"},
        {"nine.npy", "there may be 0 to 8 dimensions"},
    };
    for (int i = 0; i < COUNT(wrong); i++) {
        Bytes all = slurp(golden(wrong[i].name));
        spit(wrong[i].name, all.bytes, all.size);
        FAILS(tensor_load_npy(wrong[i].name),
              format("load_npy: %s: %s", wrong[i].name, wrong[i].rule));
    }
}

TEST(npy_wrong_beginnings) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *rule;
    } wrong[] = {
        {"", 0, "it does not begin as a .npy file"},
        {"\x93NUMP", 5, "it does not begin as a .npy file"},
        {"\x80 and more of this", 17, "it does not begin as a .npy file"},
        {"\x93NUMPY", 6, "its version is 0.0: 1.0, 2.0 and 3.0 are read"},
        {"\x93NUMPY\x04\x00\x00\x00", 10, "its version is 4.0: 1.0, 2.0 and 3.0 are read"},
        {"\x93NUMPY\x01\x01\x00\x00", 10, "its version is 1.1: 1.0, 2.0 and 3.0 are read"},
        {"\x93NUMPY\x01\x00", 8, "its header of 0 bytes goes beyond its end"},
        {"\x93NUMPY\x01\x00\x01\x00", 10, "its header of 1 byte goes beyond its end"},
        {"\x93NUMPY\x01\x00\x05\x00{}  ", 14, "its header of 5 bytes goes beyond its end"},
        {"\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14,
         "its header of 4294967295 bytes goes beyond its end"},
    };
    for (int i = 0; i < COUNT(wrong); i++) {
        spit("x.npy", wrong[i].bytes, wrong[i].size);
        FAILS(tensor_load_npy("x.npy"), format("load_npy: x.npy: %s", wrong[i].rule));
    }
}

/* ---- dicts ---------------------------------------------------------------------------------- */

CASE("dict", .setup = setup, .teardown = teardown)
TEST(dicts) {
    TensorDict *dict = tensor_dict_new();
    Tensor *a = counting(SHAPE(2), F32);
    Tensor *b = counting(SCALAR, BOOL);
    ck_assert(tensor_dict_set(dict, "a", a) && tensor_dict_set(dict, "b", a));
    ck_assert(tensor_dict_set(dict, "", b) && tensor_dict_set(dict, "b", b));
    ck_assert(tensor_dict_set(dict, "b", b)); /* set again to the same tensor */
    ck_assert_int_eq(dict->n, 3);
    ck_assert_int_eq(a->refs, 2);
    ck_assert_int_eq(b->refs, 3);
    ck_assert_ptr_eq(tensor_dict_get(dict, "a"), a);
    ck_assert_ptr_eq(tensor_dict_get(dict, "b"), b);
    ck_assert_ptr_eq(tensor_dict_get(dict, ""), b);
    ck_assert_ptr_null(tensor_dict_metadata(dict, "k"));
    ck_assert(tensor_dict_set_metadata(dict, "k", "v") && tensor_dict_set_metadata(dict, "l", ""));
    ck_assert(tensor_dict_set_metadata(dict, "k", "w"));
    ck_assert_int_eq(dict->n_metadata, 2);
    ck_assert_str_eq(tensor_dict_metadata(dict, "k"), "w");
    ck_assert_str_eq(tensor_dict_metadata(dict, "l"), "");
    tensor_dict_free(dict);
    tensor_dict_free(NULL);
    ck_assert_int_eq(a->refs, 1);
    RELEASE(a, b);
}

/* "a.x", "a.y", "b" and "ba.x", each with the number of its place */
static TensorDict *four_names(void) {
    static const char *const name[] = {"a.x", "a.y", "b", "ba.x"};
    TensorDict *dict = tensor_dict_new();
    for (int i = 0; i < 4; i++) {
        Tensor *x = tensor_full(SCALAR, i);
        tensor_dict_set(dict, name[i], x);
        tensor_release(x);
    }
    return dict;
}

static void expect_entries(const TensorDict *dict, const char *const *name) {
    ck_assert_int_eq(dict->n, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(dict->entry[i].name, name[i]);
        ck_assert_double_eq(tensor_item(dict->entry[i].tensor), i);
    }
}

TEST(a_dict_with_other_names) {
    TensorDict *dict = four_names();
    ck_assert(tensor_dict_rename(dict, "a.", "layer0."));
    expect_entries(dict, (const char *[]){"layer0.x", "layer0.y", "b", "ba.x"});
    ck_assert(tensor_dict_rename(dict, "b", "bb")); /* "b" may take the place of a renamed name */
    expect_entries(dict, (const char *[]){"layer0.x", "layer0.y", "bb", "bba.x"});
    ck_assert(tensor_dict_rename(dict, "layer0.", ""));
    expect_entries(dict, (const char *[]){"x", "y", "bb", "bba.x"});
    ck_assert(tensor_dict_rename(dict, "", "net."));
    expect_entries(dict, (const char *[]){"net.x", "net.y", "net.bb", "net.bba.x"});
    FAILS(tensor_dict_rename(dict, "a", "c"), "dict_rename: no name begins with \"a\"");
    FAILS(tensor_dict_rename(dict, "net.x", "net.y"), "dict_rename: the name \"net.y\" is taken");
    FAILS(tensor_dict_rename(dict, "net.y", "net.x"), "dict_rename: the name \"net.x\" is taken");
    FAILS(tensor_dict_rename(dict, "net.x", "__metadata__"),
          "dict_rename: the name \"__metadata__\" is taken");
    expect_entries(dict, (const char *[]){"net.x", "net.y", "net.bb", "net.bba.x"});
    tensor_dict_free(dict);
}

TEST(dict_errors) {
    static const char *const bad[] = {
        "\x80",             /* a continuation byte without a start */
        "\xc3",             /* a character that ends too early */
        "a\xe2\x82",        /* another */
        "\xc0\xaf",         /* '/' in two bytes */
        "\xe0\x80\xaf",     /* in three */
        "\xf0\x80\x80\xaf", /* in four */
        "\xc1\xbf",         /* the last character of one byte in two */
        "\xe0\x9f\xbf",     /* the last one of two bytes in three */
        "\xf0\x8f\xbf\xbf", /* the last one of three bytes in four */
        "\xed\xa0\x80",     /* the first surrogate */
        "\xed\xbf\xbf",     /* the last one */
        "\xf4\x90\x80\x80", /* beyond 0x10ffff */
        "\xf8\x88\x80\x80\x80",
        "\xff",
    };
    TensorDict *dict = tensor_dict_new();
    Tensor *x = tensor_ones(SCALAR);
    for (int i = 0; i < COUNT(bad); i++) {
        FAILS(tensor_dict_set(dict, bad[i], x), "dict_set: the name is not UTF-8");
        FAILS(tensor_dict_set_metadata(dict, bad[i], ""),
              "dict_set_metadata: the key is not UTF-8");
        FAILS(tensor_dict_set_metadata(dict, "", bad[i]),
              "dict_set_metadata: the value is not UTF-8");
    }
    FAILS(tensor_dict_rename(NULL, "x", ""), "dict_rename: the dict is NULL");
    FAILS(tensor_dict_rename(dict, NULL, ""), "dict_rename: the old prefix is NULL");
    FAILS(tensor_dict_rename(dict, "x", NULL), "dict_rename: the new prefix is NULL");
    FAILS(tensor_dict_set(NULL, "x", x), "dict_set: the dict is NULL");
    FAILS(tensor_dict_set(dict, "x", NULL), "dict_set: the tensor is NULL");
    FAILS(tensor_dict_set(dict, NULL, x), "dict_set: the name is NULL");
    FAILS(tensor_dict_set(dict, "__metadata__", x),
          "dict_set: the name __metadata__ is taken by the metadata");
    FAILS(tensor_dict_set_metadata(NULL, "k", "v"), "dict_set_metadata: the dict is NULL");
    FAILS(tensor_dict_set_metadata(dict, NULL, "v"), "dict_set_metadata: the key is NULL");
    FAILS(tensor_dict_set_metadata(dict, "k", NULL), "dict_set_metadata: the value is NULL");
    FAILS(tensor_dict_get(dict, "x\n\x7f"), "dict_get: there is no \"x??\"");
    FAILS(tensor_dict_get(NULL, "x"), "dict_get: the dict is NULL");
    FAILS(tensor_dict_get(dict, NULL), "dict_get: the name is NULL");
    FAILS(tensor_dict_metadata(NULL, "k"), "dict_metadata: the dict is NULL");
    FAILS(tensor_dict_metadata(dict, NULL), "dict_metadata: the key is NULL");
    ck_assert_int_eq(dict->n + dict->n_metadata, 0);
    tensor_dict_free(dict);
    ck_assert_ptr_null(tensor_fail("an earlier error"));
    ck_assert_ptr_null(tensor_dict_new());
    ck_assert_ptr_null(tensor_load_npy("x.npy"));
    ck_assert_ptr_null(tensor_load_safetensors("x.safetensors"));
    FAILS(tensor_save_npy(x, "x.npy"), "an earlier error");
    ck_assert_int_eq(entries(".", false), 0);
    tensor_release(x);
}

/* ---- safetensors ---------------------------------------------------------------------------- */

static void put(TensorDict *dict, const char *name, Tensor *x) {
    ck_assert_msg(tensor_dict_set(dict, name, x), "%s", tensor_error());
    tensor_release(x);
}

static void expect_same_dicts(const TensorDict *a, const TensorDict *b) {
    ck_assert_msg(a && b, "%s", tensor_error());
    ck_assert_int_eq(a->n, b->n);
    for (int i = 0; i < a->n; i++)
        expect_equal(a->entry[i].name, tensor_dict_get(b, a->entry[i].name), a->entry[i].tensor);
    ck_assert_int_eq(a->n_metadata, b->n_metadata);
    for (int i = 0; i < a->n_metadata; i++)
        ck_assert_str_eq(tensor_dict_metadata(b, a->metadata[i].key), a->metadata[i].value);
}

CASE("safetensors", .setup = setup, .teardown = teardown)
TEST(safetensors_round_trips) {
    TensorDict *dict = tensor_dict_new();
    Tensor *sources[4];
    Tensor *v;
    char name[32];
    for (DType dtype = F32; dtype <= BOOL; dtype++) {
        for (int i = 0; i < COUNT(shapes); i++) {
            snprintf(name, sizeof name, "%s of shape %d", tensor_dtype_name(dtype), i);
            put(dict, name, counting(shapes[i], dtype));
        }
        sources[dtype] = counting(SHAPE(4, 5), dtype);
        v = view(sources[dtype], 0);
        for (int i = 0; v; i++) {
            snprintf(name, sizeof name, "%s view %d", tensor_dtype_name(dtype), i);
            put(dict, name, v);
            v = view(sources[dtype], i + 1);
        }
    }
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "key %d", i);
        ck_assert(tensor_dict_set_metadata(dict, name, name + 4));
    }
    ck_assert_msg(tensor_save_safetensors(dict, "x.safetensors"), "%s", tensor_error());
    TensorDict *loaded = tensor_load_safetensors("x.safetensors");
    expect_same_dicts(dict, loaded);
    ck_assert_int_eq(entries(".", false), 1);
    tensor_dict_free(loaded);
    tensor_dict_free(dict);
    for (int i = 0; i < 4; i++) tensor_release(sources[i]);
}

static const char all_of_json[] = "\"\\/\b\f\n\r\t\x01\x7f \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80";

TEST(safetensors_is_pythons) {
    TensorDict *dict = tensor_dict_new();
    for (DType dtype = F32; dtype <= BOOL; dtype++)
        put(dict, tensor_dtype_name(dtype), counting(SHAPE(2, 3), dtype));
    put(dict, "scalar", counting(SCALAR, F64));
    put(dict, "empty", counting(SHAPE(0, 2), F32));
    put(dict, "odd", counting(SHAPE(3), BOOL));
    put(dict, all_of_json, counting(SHAPE(1), F32));
    ck_assert(tensor_dict_set_metadata(dict, "format", "n\"p\n\xc3\xa9"));
    TensorDict *theirs = tensor_load_safetensors(golden("all.safetensors"));
    expect_same_dicts(dict, theirs);
    ck_assert(tensor_save_safetensors(dict, "x.safetensors"));
    expect_same_bytes("x.safetensors", golden("all.safetensors"));
    tensor_dict_free(theirs);
    tensor_dict_free(dict);
}

TEST(safetensors_of_nothing) {
    TensorDict *dict = tensor_dict_new();
    ck_assert(tensor_save_safetensors(dict, "x.safetensors"));
    expect_same_bytes("x.safetensors", golden("nothing.safetensors"));
    TensorDict *loaded = tensor_load_safetensors("x.safetensors");
    expect_same_dicts(dict, loaded);
    tensor_dict_free(loaded);
    ck_assert(tensor_dict_set_metadata(dict, "k", "v"));
    ck_assert(tensor_save_safetensors(dict, "x.safetensors"));
    loaded = tensor_load_safetensors("x.safetensors");
    expect_same_dicts(dict, loaded);
    tensor_dict_free(loaded);
    tensor_dict_free(dict);
}

/* Writes a file with this header, which may contain a NUL, and `data` bytes of data, all 1. */
static void make_safetensors(const char *header, size_t size, size_t data) {
    Bytes all = {.size = 8 + size + data};
    all.bytes[0] = (char)(size & 0xff);
    all.bytes[1] = (char)(size >> 8);
    memset(all.bytes + 8, 1, sizeof all.bytes - 8);
    memcpy(all.bytes + 8, header, size);
    spit("x.safetensors", all.bytes, all.size);
}

TEST(safetensors_headers_of_any_json) {
    static const char header[] =
        " {\n\t\"\\u0061\\ud83d\\ude00\\u20AC\\u00e9\\/\" : { \"data_offsets\" : [ 2 , 6 ] ,\r\n"
        "\"shape\":[1 ,1],\"dtype\":\"\\u0046\\u00332\" } , \"__metadata__\" : { } ,"
        "\"z\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[0,2]},"
        "\"e\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[2,2]}}  \n ";
    make_safetensors(header, sizeof header - 1, 6);
    TensorDict *dict = tensor_load_safetensors("x.safetensors");
    ck_assert_msg(dict != NULL, "%s", tensor_error());
    ck_assert_int_eq(dict->n, 3);
    ck_assert_str_eq(dict->entry[0].name, "a\xf0\x9f\x98\x80\xe2\x82\xac\xc3\xa9/");
    ck_assert_int_eq(dict->entry[0].tensor->dtype, F32);
    ck_assert_str_eq(tensor_shape_text(dict->entry[0].tensor->shape), "(1, 1)");
    ck_assert_str_eq(dict->entry[2].name, "e");
    tensor_dict_free(dict);
}

/* The first and the last character of each length in UTF-8, but not 0, and next to surrogates. The
 * second entry has the first data. */
TEST(safetensors_names_of_all_lengths) {
    static const char header[] =
        "{\"\\u0001\\u001f\\u007f\\u0080\\u07ff\\u0800\\ud7ff\\ue000\\uffff\\ud800\\udc00\\udbff\\udfff\":"
        "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]},"
        "\"b\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[0,2]}}";
    static const char name[] =
        "\x01\x1f\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"
        "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf";
    make_safetensors(header, sizeof header - 1, 6);
    TensorDict *dict = tensor_load_safetensors("x.safetensors");
    ck_assert_msg(dict != NULL, "%s", tensor_error());
    ck_assert_int_eq(dict->n, 2);
    ck_assert_str_eq(dict->entry[0].name, name);
    ck_assert(tensor_dict_set_metadata(dict, name, name));
    ck_assert_msg(tensor_save_safetensors(dict, "x.safetensors"), "%s", tensor_error());
    TensorDict *again = tensor_load_safetensors("x.safetensors");
    expect_same_dicts(dict, again);
    tensor_dict_free(again);
    tensor_dict_free(dict);
}

/* A bool in a file whose byte is neither 0 nor 1 is true. (C must not read such a bool.) */
TEST(bools_of_any_byte) {
    static const char header[] =
        "{\"a\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]}}";
    make_safetensors(header, sizeof header - 1, 0);
    FILE *file = fopen("x.safetensors", "ab");
    fwrite("\x00\x02\xff", 1, 3, file);
    fclose(file);
    TensorDict *dict = tensor_load_safetensors("x.safetensors");
    ck_assert_msg(dict != NULL, "%s", tensor_error());
    EXPECT_ELEMENTS(tensor_dict_get(dict, "a"), 0, 1, 1);
    tensor_dict_free(dict);
}

#define ENTRY(name, dtype, shape, offsets)                                                         \
    "\"" name "\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define GOOD        ENTRY("a", "\"F32\"", "[1]", "[0,4]")
#define JSON_FIELDS "\"a\": it must have dtype, shape and data_offsets, each once"
#define MORE(value)                                                                                \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"b\":" value "}}"
#define RANGE(offsets, bytes) "its data_offsets " offsets " are no range in the " bytes " of data"
#define JSON_VALUE(byte)      IN_A AT(byte, "a value of JSON")

static const struct {
    const char *header;
    size_t data;
    const char *rule;
} safetensors_wrong[] = {
    {"", 0, AT(0, "'{'")},
    {"[]", 0, AT(0, "'{'")},
    {"{", 0, AT(1, "a string")},
    {"{,}", 0, AT(1, "a string")},
    {"{}}", 0, AT(2, "its end")},
    {"{" GOOD "} x", 4, AT(55, "its end")},
    {"{" GOOD, 4, AT(53, "'}'")},
    {"{" GOOD ",}", 4, AT(54, "a string")},
    {"{" GOOD " " GOOD "}", 4, AT(54, "'}'")},
    {"{\"a\"}", 0, AT(4, "':'")},
    {"{\"a", 0, AT(3, "the end of a string")},
    {"{\"a\n\":1}", 0, AT(3, "escaped")},
    {"{\"a\x1f\":1}", 0, AT(3, "escaped")},
    {"{'a':1}", 0, AT(1, "a string")},
    {"{\"\\x\":1}", 0, AT(3, "an escape that means a character")},
    {"{\"\\", 0, AT(3, "an escape that means a character")},
    {"{\"\\u12", 0, AT(3, "an escape that means a character")},
    {"{\"\\u12g4\":1}", 0, AT(3, "an escape that means a character")},
    {"{\"\\u0000\":1}", 0, AT(8, "an escape that means a character")},
    {"{\"\\ude00\":1}", 0, AT(8, "an escape that means a character")},
    {"{\"\\ud83d\":1}", 0, AT(9, "an escape that means a character")},
    {"{\"\\ud83d", 0, AT(8, "an escape that means a character")},
    {"{\"\\ud83d\\n\":1}", 0, AT(9, "an escape that means a character")},
    {"{\"\\ud83d\\ud83d\":1}", 0, AT(14, "an escape that means a character")},
    {"{\"\\ud83d\\ue000\":1}", 0, AT(14, "an escape that means a character")},
    {"{\"\xff\":1}", 0, "its header is not UTF-8"},
    {"{\"a\":1}", 0, IN_A AT(5, "'{'")},
    {"{\"a\":{}}", 0, JSON_FIELDS},
    {"{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 0, IN_A AT(5, "'{'")},
    {"{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{", 0, IN_A AT(31, "a string")},
    {"{\"a\":{\"shape\":[[[[[[[[[[[[[[[[[[[[[[[[", 0, IN_A AT(15, NUMBER)},
    {"{\"__metadata__\":{\"a\":{\"a\":{\"a\":{", 0, AT(21, "a string")},
    {"{\"__metadata__\":{\"a\":1}}", 0, AT(21, "a string")},
    {"{\"__metadata__\":nul}", 0, AT(16, "'{'")},
    {"{\"__metadata__\":null,\"__metadata__\":null}", 0,
     "the name \"__metadata__\" is there twice"},
    {"{\"__metadata__\":{\"a\":null}}", 0, AT(21, "a string")},
    {"{\"__metadata__\":{\"a\":\"b\"", 0, AT(24, "'}'")},
    {"{\"__metadata__\":{\"a\":\"b\",\"c\":\"\",\"a\":\"b\"}}", 0, "the name \"a\" is there twice"},
    {"{\"__metadata__\":{\"c\":\"b\",\"a\":\"\",\"c\":\"b\"}}", 0, "the name \"c\" is there twice"},
    {"{\"__metadata__\":{\"a\":\"b\"},\"__metadata__\":{}}", 0,
     "the name \"__metadata__\" is there twice"},
    {"{\"__metadata__\":{},\"__metadata__\":{\"a\":\"b\"}}", 0,
     "the name \"__metadata__\" is there twice"},
    {"{" GOOD
     "," ENTRY("b", "\"I64\"", "[0]", "[4,4]") "," ENTRY("a", "\"F32\"", "[1]", "[4,8]") "}",
     8, "the name \"a\" is there twice"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, JSON_FIELDS},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 4, JSON_FIELDS},
    {"{\"a\":{\"dtype\":\"F32\",\"more\":1}}", 4, JSON_FIELDS},
    {"{" ENTRY("a", "1", "[1]", "[0,4]") "}", 4, IN_A AT(14, "a string")},
    {"{" ENTRY("a", "\"F32\"", "1", "[0,4]") "}", 4, IN_A AT(28, "'['")},
    {"{" ENTRY("a", "\"F32\"", "{}", "[0,4]") "}", 4, IN_A AT(28, "'['")},
    {"{" ENTRY("a", "\"F32\"", "[\"1\"]", "[0,4]") "}", 4, IN_A AT(29, NUMBER)},
    {"{" ENTRY("a", "\"F32\"", "[-1]", "[0,4]") "}", 4, IN_A AT(29, NUMBER)},
    {"{" ENTRY("a", "\"F32\"", "[1.0]", "[0,4]") "}", 4, IN_A AT(30, "']'")},
    {"{" ENTRY("a", "\"F32\"", "[1e0]", "[0,4]") "}", 4, IN_A AT(30, "']'")},
    {"{" ENTRY("a", "\"F32\"", "[01]", "[0,4]") "}", 4, IN_A AT(29, NUMBER)},
    {"{" ENTRY("a", "\"F32\"", "[NaN]", "[0,4]") "}", 4, IN_A AT(29, NUMBER)},
    {"{" ENTRY("a", "\"F32\"", "[Infinity]", "[0,4]") "}", 4, IN_A AT(29, NUMBER)},
    {"{" ENTRY("a", "\"F32\"", "[1]", "[0,1e999]") "}", 4, IN_A AT(51, "']'")},
    {"{" ENTRY("a", "\"F32\"", "[1]", "[0,18446744073709551620]") "}", 4, IN_A AT(50, NUMBER)},
    {"{" ENTRY("a", "\"F32\"", "[1,]", "[0,4]") "}", 4, IN_A AT(31, NUMBER)},
    {"{" ENTRY("a", "\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4,
     "\"a\": there may be 0 to 8 dimensions"},
    {"{" ENTRY("a", "\"F16\"", "[2]", "[0,8]") "}", 8, IN_A SIZE("(2,)", "float16", "8 bytes")},
    {"{" ENTRY("a", "\"BF16\"", "[2]", "[0,2]") "}", 2, IN_A SIZE("(2,)", "bfloat16", "2 bytes")},
    {"{" ENTRY("a", "\"BF16\"", "[0,4611686018427387904]", "[0,0]") "}", 0,
     IN_A SIZE("(0, 4611686018427387904)", "bfloat16", "0 bytes")},
    {MORE("nul"), 4, JSON_VALUE(57)},
    {MORE("-"), 4, JSON_VALUE(58)},
    {MORE("1."), 4, JSON_VALUE(59)},
    {MORE("1e+"), 4, JSON_VALUE(60)},
    {MORE(".5"), 4, JSON_VALUE(57)},
    {MORE("NaN"), 4, JSON_VALUE(57)},
    {MORE("[1,]"), 4, JSON_VALUE(60)},
    {MORE("[1"), 4, IN_A AT(59, "','")},
    {MORE("01"), 4, IN_A AT(58, "'}'")},
    {MORE("[1}"), 4, IN_A AT(59, "','")},
    {MORE("{\"x\"}"), 4, IN_A AT(61, "':'")},
    {MORE("{\"x\":1,}"), 4, IN_A AT(64, "a string")},
    {MORE("{1:1}"), 4, IN_A AT(58, "a string")},
    {MORE("\"\\x\""), 4, IN_A AT(59, "an escape that means a character")},
    {MORE("1,\"dtype\":\"F32\""), 4, JSON_FIELDS},
    {"{" ENTRY("a", "\"F32\"", "[1]", "[]") "}", 4, IN_A RANGE("()", "4 bytes")},
    {"{" ENTRY("a", "\"F32\"", "[1]", "[0]") "}", 4, IN_A RANGE("(0,)", "4 bytes")},
    {"{" ENTRY("a", "\"F32\"", "[1]", "[0,4,8]") "}", 4, IN_A RANGE("(0, 4, 8)", "4 bytes")},
    {"{" ENTRY("a", "\"F32\"", "[1]", "[4,0]") "}", 4, IN_A RANGE("(4, 0)", "4 bytes")},
    {"{" ENTRY("a", "\"F32\"", "[1]", "[1,0]") "}", 4, IN_A RANGE("(1, 0)", "4 bytes")},
    {"{" GOOD "}", 3, IN_A RANGE("(0, 4)", "3 bytes")},
    {"{" GOOD "}", 1, IN_A RANGE("(0, 4)", "1 byte")},
    {"{" ENTRY("a", "\"F32\"", "[1]", "[9223372036854775803,9223372036854775807]") "}", 4,
     IN_A RANGE("(9223372036854775803, 9223372036854775807)", "4 bytes")},
    {"{" ENTRY("a", "\"F64\"", "[1]", "[0,4]") "}", 4, IN_A SIZE("(1,)", "float64", "4 bytes")},
    {"{" ENTRY("a", "\"F32\"", "[4611686018427387905]", "[0,4]") "}", 4,
     IN_A SIZE("(4611686018427387905,)", "float32", "4 bytes")},
    {"{" ENTRY("a", "\"F32\"", "[0,9223372036854775807]", "[0,0]") "}", 0,
     IN_A SIZE("(0, 9223372036854775807)", "float32", "0 bytes")},
    {"{" GOOD "}", 5, "its tensors take 4 of 5 bytes of data"},
    {"{}", 1, "its tensors take 0 of 1 byte of data"},
    {"{" GOOD "," ENTRY("b", "\"F32\"", "[1]", "[0,4]") "}", 4,
     "\"b\": its data overlap the data of another tensor"},
    {"{" GOOD "," ENTRY("b", "\"BOOL\"", "[1]", "[3,4]") "}", 4,
     "\"b\": its data overlap the data of another tensor"},
    {"{" GOOD "," ENTRY("b", "\"F32\"", "[1]", "[2,6]") "}", 8,
     "\"b\": its data begin at byte 2, and the data before them end at 4"},
    {"{" GOOD "," ENTRY("b", "\"F32\"", "[1]", "[6,10]") "}", 10,
     "\"b\": its data begin at byte 6, and the data before them end at 4"},
    {"{" GOOD "," ENTRY("b", "\"F32\"", "[0]", "[2,2]") "}", 4,
     "\"b\": its data begin at byte 2, and the data before them end at 4"},
    {"{" ENTRY("a", "\"F32\"", "[1]", "[1,5]") "}", 5,
     "\"a\": its data begin at byte 1, and the data before them end at 0"},
    {"{" ENTRY("a name of more than sixty bytes is cut before a character \xe2\x82\xac\xe2\x82\xac",
               "\"F8\"", "[1]", "[1,6]") "}",
     5,
     "\"a name of more than sixty bytes is cut before a character ...\": "
     "its data_offsets (1, 6) are no range in the 5 bytes of data"},
    {"{" ENTRY("a", "\"U8\"", "[4]", "[0,4]") "}", 5, "its tensors take 4 of 5 bytes of data"},
    {"{" GOOD "," ENTRY("b", "\"U8\"", "[1]", "[3,4]") "}", 4,
     "\"b\": its data overlap the data of another tensor"},
    {"{" GOOD "," ENTRY("a", "\"U8\"", "[4]", "[4,8]") "}", 8, "the name \"a\" is there twice"},
    {"{" ENTRY("b", "\"U8\"", "[4]", "[0,4]") "," ENTRY("b", "\"I8\"", "[4]", "[4,8]") "}", 8,
     "the name \"b\" is there twice"},
};

LOOP_TEST(safetensors_wrong_headers, COUNT(safetensors_wrong)) {
    const char *header = safetensors_wrong[_i].header;
    make_safetensors(header, strlen(header), safetensors_wrong[_i].data);
    TensorDict *dict = tensor_load_safetensors("x.safetensors");
    ck_assert_msg(!dict, "%s was read", header);
    expect_error(format("load_safetensors: x.safetensors: %s", safetensors_wrong[_i].rule));
}

#define ONLY_READ ": only F16, BF16, F32, F64, I64 and BOOL are read"

LOOP_TEST(safetensors_of_other_types, 2) {
    static const char *const type[] = {"I32", "U8"};
    char name[32];
    Bytes all = slurp(golden(strcat(strcpy(name, type[_i]), ".safetensors")));
    spit(name, all.bytes, all.size);
    TensorDict *dict = tensor_load_safetensors(name);
    ck_assert_ptr_nonnull(dict);
    ck_assert_int_eq(dict->n_unread, 1);
    ck_assert_str_eq(dict->unread->key, "w");
    ck_assert_str_eq(dict->unread->value, type[_i]);
    FAILS(tensor_dict_get(dict, "w"),
          format("dict_get: the type of \"w\" is %s" ONLY_READ "; in PyTorch, save x.long()",
                 type[_i]));
    tensor_dict_free(dict);
}

/* An entry that is not read stops only who wants it. */
TEST(an_entry_that_is_not_read) {
    static const char header[] = "{" ENTRY("bias", "\"F32\"", "[1]", "[0,4]") "," ENTRY(
        "mask", "\"U8\"", "[4]", "[4,8]") "," ENTRY("weight", "\"F8_E4M3\"", "[4,1]", "[8,12]") "}";
    make_safetensors(header, strlen(header), 12);
    TensorDict *dict = tensor_load_safetensors("x.safetensors");
    Linear *linear = nn_linear_new(4, 1, true);
    ck_assert_int_eq(dict->n, 1);
    ck_assert_int_eq(dict->n_unread, 2);
    ck_assert(tensor_dict_rename(dict, "mask", "a.mask") &&
              tensor_dict_rename(dict, "a.", "")); /* a name that was not read is one, too */
    FAILS(tensor_dict_rename(dict, "bias", "mask"), "dict_rename: the name \"mask\" is taken");
    ck_assert_ptr_nonnull(tensor_dict_get(dict, "bias"));
    FAILS(tensor_dict_get(dict, "weight"),
          "dict_get: the type of \"weight\" is F8_E4M3" ONLY_READ "; in PyTorch, save x.float()");
    FAILS(tensor_save_safetensors(dict, "y.safetensors"),
          "save_safetensors: the type of \"mask\" is U8" ONLY_READ "; in PyTorch, save x.long()");
    FAILS(nn_load(linear, "x.safetensors"),
          "load: x.safetensors does not fit Linear: \"weight\" is F8_E4M3, which is not read, and "
          "should be float32");
    FAILS(nn_load_not_strict(linear, "x.safetensors"),
          "load_not_strict: x.safetensors does not fit Linear: \"weight\" is F8_E4M3, which is not "
          "read, and should be float32");
    ck_assert(tensor_dict_set(dict, "weight", linear->weight)); /* in its place */
    ck_assert_int_eq(dict->n_unread, 1);
    FAILS(nn_load_state_dict(linear, "", dict),
          "load_state_dict: the dict does not fit Linear: unexpected: \"mask\"");
    IncompatibleKeys *keys = nn_load_state_dict_not_strict(linear, "", dict);
    ck_assert_ptr_nonnull(keys);
    ck_assert(keys->num_missing == 0 && keys->num_unexpected == 1);
    ck_assert_str_eq(keys->unexpected_keys[0], "mask");
    nn_incompatible_keys_free(keys);
    ck_assert(tensor_dict_set(dict, "mask", linear->bias));
    ck_assert(tensor_save_safetensors(dict, "y.safetensors"));
    tensor_dict_free(dict);
    nn_free(linear);
}

/* ---- files of other kinds -------------------------------------------------------------------- */

#define SAVE_TENSORS ": in Python, load it and save its tensors with safetensors.torch.save_file"
#define A_PAGE       "a web page, not the file itself: download it again"
#define GZIP_HEADER  "\x1f\x8b\x08\0\0\0\0\0\0\3"

/* Both readers, for all that is not a file of their own. */
TEST(files_of_other_kinds) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *what;
    } other[] = {
        {"PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\20\0\22\0archive/data.pkl", 46,
         "a file of torch.save" SAVE_TENSORS},
        {"PK\3\4\24\0\0\0\0\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\24\0x.npy", 35,
         "a .npz file: in NumPy, save each of its arrays with np.save"},
        {"PK\3\4", 4, "a zip archive: unpack it"},
        {"\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 15,
         "a file of an old torch.save" SAVE_TENSORS},
        {"\x80\4\x95\0\0\0\0\0\0\0\0}\x94.", 14, "a pickle" SAVE_TENSORS},
        {"\x80\2}q\0.", 6, "a pickle" SAVE_TENSORS},
        {"GGUF\3\0\0\0\0\0\0\0", 12,
         "a GGUF file, most of whose types no tensor has: take the model's .safetensors"},
        {"\x89HDF\r\n\x1a\n\0", 9,
         "an HDF5 file: in Python, read it with h5py and save its arrays"},
        {GZIP_HEADER, 10, "compressed, by gzip: unpack it"},
        {"version https://git-lfs.github.com/spec/v1\n", 43,
         "a pointer of Git LFS, not the file itself: git lfs pull"},
        {"<!DOCTYPE html>", 15, A_PAGE},
        {"<html>", 6, A_PAGE},
        {"{\"metadata\": {}}", 16,
         "a text, JSON: the tensors are in .safetensors files, which it may name"},
        {"{\"a\":1}", 7, "a text, JSON: the tensors are in .safetensors files, which it may name"},
    };
    for (int i = 0; i < COUNT(other); i++) {
        spit("x", other[i].bytes, other[i].size);
        FAILS(tensor_load_safetensors("x"), format("load_safetensors: x: it is %s", other[i].what));
        FAILS(tensor_load_npy("x"), format("load_npy: x: it is %s", other[i].what));
    }
    spit("x", "\x93NUMPY\1\0v\0{", 11);
    FAILS(tensor_load_safetensors("x"),
          "load_safetensors: x: it is a .npy file: tensor_load_npy reads it");
    make_safetensors("{}", 2, 0);
    FAILS(tensor_load_npy("x.safetensors"),
          "load_npy: x.safetensors: it is a safetensors file: tensor_load_safetensors reads it");
}

/* Each pair: 16-bit floats, and the float32 that NumPy or PyTorch makes of them. */
TEST(safetensors_of_16_bit_floats) {
    TensorDict *dict = tensor_load_safetensors(golden("half.safetensors"));
    ck_assert_msg(dict != NULL, "%s", tensor_error());
    static const char *const names[] = {"F16", "BF16"};
    for (int i = 0; i < 2; i++) {
        char twin[16];
        const Tensor *x = tensor_dict_get(dict, names[i]);
        const Tensor *y = tensor_dict_get(dict, strcat(strcpy(twin, names[i]), " as F32"));
        ck_assert(x && y && x->dtype == F32 && y->dtype == F32 && tensor_numel(y) == 15);
        ck_assert_int_eq(tensor_numel(x), 15);
        ck_assert_msg(!memcmp(x->data, y->data, 15 * sizeof(float)), "%s", names[i]);
    }
    tensor_dict_free(dict);
    dict = tensor_load_safetensors(golden("F16.safetensors"));
    Tensor *w = counting(SHAPE(2), F32);
    expect_equal("w", tensor_dict_get(dict, "w"), w);
    expect_equal("ok", tensor_dict_get(dict, "ok"), w);
    tensor_release(w);
    tensor_dict_free(dict);
}

/* The bits of the float32 that a 16-bit float is: a sign, an exponent, `width` bits of fraction. */
static uint32_t bits_of_16(uint32_t half, int width) {
    const int top = (1 << (15 - width)) - 1, bias = top / 2; /* the exponent of NaN, of 1 */
    const int fraction = (int)(half & ((1u << width) - 1)), exponent = (int)(half >> width) & top;
    const double whole = fraction + (exponent ? ldexp(1, width) : 0);
    const float x = (float)ldexp(whole, (exponent ? exponent : 1) - bias - width);
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (exponent == top) bits = 0x7f800000 | (uint32_t)fraction << (23 - width);
    return bits | half >> 15 << 31;
}

static void write_every_16_bits(const char *path, const void *front, size_t size, bool high_first) {
    FILE *file = fopen(path, "wb");
    fwrite(front, 1, size, file);
    for (int i = 0; i < 1 << 16; i++) {
        fputc(high_first ? i >> 8 : i & 0xff, file);
        fputc(high_first ? i & 0xff : i >> 8, file);
    }
    fclose(file);
}

static void expect_every_16_bits(const Tensor *x, int width) {
    ck_assert_msg(x != NULL, "%s", tensor_error());
    ck_assert(x->dtype == F32 && tensor_numel(x) == 1 << 16);
    const char *byte = x->data;
    for (uint32_t i = 0; i < 1 << 16; i++) {
        uint32_t bits;
        memcpy(&bits, byte + 4 * (size_t)i, sizeof bits);
        ck_assert_msg(bits == bits_of_16(i, width), "0x%x became 0x%x", i, bits);
    }
}

/* Every number of 16 bits, and every NaN with its payload, becomes the float32 that is equal. */
LOOP_TEST(every_16_bit_float_is_exact, 4) {
    static const char *const form[] = {"<f2", ">f2", "F16", "BF16"};
    const bool npy = _i < 2;
    char front[160];
    memset(front, 0, sizeof front);
    const int at = npy ? 10 : 8;
    const int length = snprintf(front + at, sizeof front - (size_t)at,
                                npy ? "{'descr':'%s','fortran_order':False,'shape':(65536,)}"
                                    : "{\"x\":{\"dtype\":\"%s\",\"shape\":[65536],"
                                      "\"data_offsets\":[0,131072]}}",
                                form[_i]);
    if (npy) memcpy(front, "\x93NUMPY\x01", 7);
    front[npy ? 8 : 0] = (char)length;
    write_every_16_bits("x", front, (size_t)(at + length), _i == 1);
    TensorDict *dict = npy ? tensor_dict_new() : tensor_load_safetensors("x");
    if (npy) put(dict, "x", tensor_load_npy("x"));
    expect_every_16_bits(dict ? tensor_dict_get(dict, "x") : NULL, _i == 3 ? 7 : 10);
    tensor_dict_free(dict);
}

/* Python's safetensors reads these files, too: metadata null, and keys that nobody knows. */
LOOP_TEST(safetensors_of_other_writers, 2) {
    static const char *const names[] = {"null.safetensors", "unknown.safetensors"};
    TensorDict *dict = tensor_load_safetensors(golden(names[_i]));
    Tensor *w = counting(SHAPE(2), F32);
    ck_assert_msg(dict != NULL, "%s", tensor_error());
    ck_assert_int_eq(dict->n, 1);
    ck_assert_int_eq(dict->n_metadata, 0);
    expect_equal(names[_i], tensor_dict_get(dict, "w"), w);
    tensor_release(w);
    tensor_dict_free(dict);
}

/* The value of an unknown key is skipped, whatever it is. */
TEST(safetensors_skips_any_value) {
    static const char *const values[] = {
        "0",
        "-0",
        "-10.25E-07",
        "1e999",
        "true",
        "false",
        "null",
        "\"\"",
        "\"\\ud83d\\ude00]}\"",
        "[]",
        "{}",
        " [ ] ",
        "[[],{},[{}]]",
        "{\"a\":1,\"a\":{\"a\":[null , 2]}, \"b\":\"\"}",
    };
    char deep[256];
    for (int i = 0; i < COUNT(values) + 2; i++) {
        const int depth = i < COUNT(values) ? 0 : 125 + i - COUNT(values); /* 125, 126 */
        memset(deep, '[', (size_t)depth);
        memset(deep + depth, ']', (size_t)depth);
        deep[2 * depth] = '\0';
        const char *header =
            format("{\"a\":{\"b\":%s,\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                   depth ? deep : values[i]);
        make_safetensors(header, strlen(header), 4);
        TensorDict *dict = tensor_load_safetensors("x.safetensors");
        ck_assert_msg((dict != NULL) == (depth < 126), "%s: %s", header, tensor_error());
        if (!dict)
            expect_error(
                "load_safetensors: x.safetensors: \"a\": byte 136 of the header should be in "
                "at most 125 brackets");
        tensor_dict_free(dict);
    }
}

#define BEGINS(length)                                                                             \
    "it does not begin as a safetensors file: a header of " length " bytes is longer than 100000000"

TEST(safetensors_wrong_lengths) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *rule;
    } wrong[] = {
        {"", 0, "it is shorter than the 8 bytes before the header"},
        {"\2\0\0\0\0\0\0", 7, "it is shorter than the 8 bytes before the header"},
        {"\2\0\0\0\0\0\0\0{", 9, "its header of 2 bytes goes beyond its end"},
        {"\0\xe1\xf5\5\0\0\0\0{}", 10, "its header of 100000000 bytes goes beyond its end"},
        {"\1\xe1\xf5\5\0\0\0\0{}", 10, BEGINS("100000001")},
        {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, BEGINS("18446744073709551615")},
        {"# a page\n", 9, BEGINS("7306916054639386659")},
        {"words\0\0\0", 8, BEGINS("495606460279")},
    };
    for (int i = 0; i < COUNT(wrong); i++) {
        spit("x.safetensors", wrong[i].bytes, wrong[i].size);
        FAILS(tensor_load_safetensors("x.safetensors"),
              format("load_safetensors: x.safetensors: %s", wrong[i].rule));
    }
    make_safetensors("{\"a\0\":1}", 8, 0); /* a NUL without an escape */
    FAILS(tensor_load_safetensors("x.safetensors"),
          "load_safetensors: x.safetensors: byte 3 of the header should be escaped");
}

TEST(safetensors_with_too_much_metadata) {
    FILE *file = fopen("x.safetensors", "wb");
    const unsigned length = 17 + 4097 * 12; /* {"__metadata__":{, the pairs, }} */
    for (int i = 0; i < 8; i++) fputc(i < 4 ? (int)(length >> 8 * i & 0xff) : 0, file);
    fputs("{\"__metadata__\":{", file);
    for (int i = 0; i < 4097; i++) fprintf(file, "%s\"%05d\":\"\"", i ? " ," : "", i);
    fputs("}}", file);
    fclose(file);
    FAILS(tensor_load_safetensors("x.safetensors"),
          "load_safetensors: x.safetensors: there are more than 4096 metadata");

    TensorDict *dict = tensor_dict_new();
    char key[8];
    for (int i = 0; i < 4096; i++)
        ck_assert(snprintf(key, sizeof key, "%d", i) > 0 &&
                  tensor_dict_set_metadata(dict, key, ""));
    ck_assert(tensor_save_safetensors(dict, "x.safetensors"));
    tensor_dict_free(tensor_load_safetensors("x.safetensors"));
    ck_assert_msg(!tensor_error(), "%s", tensor_error());
    ck_assert(tensor_dict_set_metadata(dict, "one more", ""));
    FAILS(tensor_save_safetensors(dict, "x.safetensors"),
          "save_safetensors: there are more than 4096 metadata");
    tensor_dict_free(dict);
}

/* ---- disks that cannot be written ----------------------------------------------------------- */

/* The linker replaces these functions of the C library by the functions below. */
static const char *failing = ""; /* the call that fails */
static int with;                 /* this errno */

static bool fails(const char *call) {
    if (strcmp(call, failing) != 0) return false;
    errno = with;
    return true;
}

#ifdef __GLIBC__ /* its name of fstat for files of more than 2 GB */
#define __wrap_fstat __wrap_fstat64
#define __real_fstat __real_fstat64
#endif
FILE *__real_fdopen(int fd, const char *mode);
void *__real_realloc(void *block, size_t size);
int __real_fstat(int fd, struct stat *status);
int __real_fsync(int fd);
int __real_fclose(FILE *file);
int __real_rename(const char *from, const char *to);

FILE *__wrap_fdopen(int fd, const char *mode);
void *__wrap_realloc(void *block, size_t size);
int __wrap_fstat(int fd, struct stat *status);
int __wrap_fsync(int fd);
int __wrap_fclose(FILE *file);
int __wrap_rename(const char *from, const char *to);

FILE *__wrap_fdopen(int fd, const char *mode) {
    if (fails("fdopen")) return NULL;
    if (fails("length"))
        ck_assert_int_eq(truncate("x.npy", 0), 0); /* the file becomes shorter after its size was
                                                    * read */
    if (!fails("mode")) return __real_fdopen(fd, mode);
    const int null = open("/dev/null", O_WRONLY); /* a descriptor that cannot be read */
    dup2(null, fd);
    close(null);
    return __real_fdopen(fd, "wb");
}
void *__wrap_realloc(void *block, size_t size) {
    return fails(block ? "growth" : "realloc") ? NULL : __real_realloc(block, size);
}
int __wrap_fstat(int fd, struct stat *status) {
    return fails("fstat") ? -1 : __real_fstat(fd, status);
}

static void (*when_all_is_written)(void); /* called before the rename */
static char calls_made[128];              /* the calls that put a file in place, in order */

static void note_call(const char *call) {
    const size_t length = strlen(calls_made);
    snprintf(calls_made + length, sizeof calls_made - length, "%s, ", call);
}
int __wrap_fsync(int fd) {
    struct stat status;
    ck_assert_int_eq(__real_fstat(fd, &status), 0);
    const bool directory = S_ISDIR(status.st_mode);
    note_call(directory ? "fsync of the directory" : "fsync");
    if (when_all_is_written && !directory) when_all_is_written();
    return fails(directory ? "fsync of the directory" : "fsync") ? -1 : __real_fsync(fd);
}
int __wrap_fclose(FILE *file) {
    int result = __real_fclose(file);
    return fails("fclose") ? EOF : result;
}
int __wrap_rename(const char *from, const char *to) {
    note_call("rename");
    return fails("rename") ? -1 : __real_rename(from, to);
}

/* x.npy contains a 1. Saves another tensor there while this call fails; the old file must stay. */
static void expect_refused(const char *call, int error, const char *sentence) {
    Tensor *old = tensor_ones(SCALAR);
    Tensor *x = tensor_zeros(SHAPE(3000)); /* more than a buffer */
    ck_assert(tensor_save_npy(old, "x.npy"));
    failing = call;
    with = error;
    ck_assert(!tensor_save_npy(x, "x.npy"));
    failing = "";
    expect_error(sentence);
    Tensor *left = tensor_load_npy("x.npy");
    expect_equal("what was there before", left, old);
    ck_assert_int_eq(entries(".", false), 1);
    RELEASE(old, left, x);
}

CASE("disk", .setup = setup, .teardown = teardown)
TEST(a_failed_write_leaves_the_old_file) {
    expect_refused("fdopen", EMFILE,
                   format("save_npy: x.npy: it cannot be written: %s", strerror(EMFILE)));
    expect_refused("fdopen", ENOMEM, "save_npy: x.npy: it cannot be written: out of memory");
    expect_refused("fsync", EIO,
                   format("save_npy: x.npy: it cannot be written: %s", strerror(EIO)));
    expect_refused("rename", EROFS, "save_npy: x.npy: it cannot be written: Read-only file system");
}

TEST(a_full_disk_leaves_the_old_file) {
    const struct rlimit small = {2048, RLIM_INFINITY};
    struct rlimit before;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){small.rlim_cur, before.rlim_max});
    expect_refused("", 0, "save_npy: x.npy: it cannot be written: File too large");
    setrlimit(RLIMIT_FSIZE, &before);
}

/* The bytes are on the disk before the rename, and the name is on the disk when the save ends. */
TEST(what_is_saved_is_on_the_disk) {
    Tensor *x = tensor_ones(SHAPE(2));
    ck_assert(!mkdir("folder", 0700) && !symlink("folder/x.npy", "link"));
    static const char *const paths[] = {"x.npy", "folder/x.npy", "link"};
    for (int i = 0; i < COUNT(paths); i++) {
        *calls_made = '\0';
        ck_assert(tensor_save_npy(x, paths[i]));
        ck_assert_str_eq(calls_made, "fsync, rename, fsync of the directory, ");
    }
    failing = "fsync of the directory";
    with = EINVAL; /* a file system that cannot flush directories */
    ck_assert(tensor_save_npy(x, "x.npy"));
    with = EIO;
    ck_assert(!tensor_save_npy(x, "x.npy"));
    failing = "";
    expect_error(format("save_npy: x.npy: it is in place, but its directory cannot be flushed to "
                        "the disk: %s",
                        strerror(EIO)));
    ck_assert_int_eq(remove("folder/x.npy"), 0);
    tensor_release(x);
}

/* ---- writers that are killed --------------------------------------------------------------- */

static void die(void) { raise(SIGKILL); }

static const Tensor *saved_by_others;

/* Starts a process that saves. It calls `then` before the rename, unless `then` is NULL. */
static pid_t start_saving(const char *path, void (*then)(void)) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        when_all_is_written = then;
        _exit(tensor_save_npy(saved_by_others, path) ? 0 : 1);
    }
    ck_assert_int_gt(child, 0);
    return child;
}

static int status_of(pid_t child) {
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

/* A process that is killed leaves the old file and a temporary file. The next save removes this
 * temporary file, and no file with a similar name. */
TEST(a_killed_writer_leaves_the_old_file) {
    static const char *const others[] = {
        ".y.npy.tapehead-1-1", ".x.npy.tapehead-1", ".x.npy.tapehead-1-1-1", ".x.npy.tapehead-1-",
        "x.npy.tapehead-1-1",  ".x.npy.tapehead-x", ".x.npy.tapehead--1-1",  ".x.npy",
    };
    Tensor *old = tensor_ones(SCALAR);
    Tensor *x = tensor_zeros(SHAPE(3000));
    saved_by_others = x;
    for (int i = 0; i < COUNT(others); i++) spit(others[i], "", 0);
    ck_assert(tensor_save_npy(old, "x.npy"));
    for (int i = 0; i < 3; i++) {
        const int status = status_of(start_saving("x.npy", die));
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        ck_assert_int_eq(entries(".", false), COUNT(others) + 2); /* x.npy and the temporary file
                                                                   * of the last process */
    }
    Tensor *left = tensor_load_npy("x.npy");
    expect_equal("what was there before", left, old);
    /* as if an older process with our number had left it */
    spit(format(".x.npy.tapehead-%ld-1", (long)getpid()), "", 0);
    ck_assert(!mkfifo(".x.npy.tapehead-1-2", 0600) && !mkfifo(".x.npy.tapehead-1-3", 0600));
    const int reader = open(".x.npy.tapehead-1-3", O_RDWR); /* the other pipe has no reader, and
                                                             * nothing waits for one */
    ck_assert(!tensor_save_npy(x, "nowhere/x.npy") && tensor_error());
    tensor_clear_error();
    ck_assert(tensor_save_npy(x, "x.npy"));
    ck_assert_int_eq(entries(".", false), COUNT(others) + 3); /* both pipes are still there */
    close(reader);
    RELEASE(old, left, x);
}

static int ready[2], go_on[2]; /* pipes */

static void wait_to_go_on(void) {
    char byte = 0;
    if (write(ready[1], &byte, 1) != 1 || read(go_on[0], &byte, 1) != 1) abort();
}
static void make_pipes(void) { ck_assert(!pipe(ready) && !pipe(go_on)); }
static void close_pipes(void) {
    for (int i = 0; i < 2; i++) ck_assert(!close(ready[i]) && !close(go_on[i]));
}

/* Saves to x.npy while another writer is about to do the same. */
static void save_meanwhile(Tensor *x) {
    char byte = 0;
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert(tensor_save_npy(x, "x.npy"));
    ck_assert_int_eq(entries(".", false), 2);
    Tensor *y = tensor_load_npy("x.npy");
    expect_equal("what was saved meanwhile", y, x);
    ck_assert_int_eq(write(go_on[1], &byte, 1), 1);
    tensor_release(y);
}

static void expect_saved_by_others(void) {
    Tensor *y = tensor_load_npy("x.npy");
    expect_equal("what was saved last", y, saved_by_others);
    ck_assert_int_eq(entries(".", false), 1);
    tensor_release(y);
}

TEST(a_writer_that_is_alive_is_not_disturbed) {
    Tensor *x = tensor_ones(SHAPE(2));
    Tensor *y = tensor_zeros(SHAPE(3000));
    saved_by_others = y;
    make_pipes();
    const pid_t child = start_saving("x.npy", wait_to_go_on);
    save_meanwhile(x);
    ck_assert_int_eq(status_of(child), 0);
    expect_saved_by_others();
    close_pipes();
    RELEASE(x, y);
}

static _Thread_local bool is_slow;
static void wait_if_slow(void) {
    if (is_slow) wait_to_go_on();
}

static void *save_slowly(void *ok) {
    is_slow = true;
    *(bool *)ok = tensor_save_npy(saved_by_others, "x.npy");
    return NULL;
}

/* The lock of a temporary file excludes other threads of the same process, too. */
TEST(a_thread_that_saves_is_not_disturbed) {
    Tensor *x = tensor_ones(SHAPE(2));
    Tensor *y = tensor_zeros(SHAPE(3000));
    pthread_t thread;
    bool ok = false;
    saved_by_others = y;
    make_pipes();
    when_all_is_written = wait_if_slow;
    ck_assert_int_eq(pthread_create(&thread, NULL, save_slowly, &ok), 0);
    save_meanwhile(x);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    when_all_is_written = NULL;
    ck_assert(ok);
    expect_saved_by_others();
    close_pipes();
    RELEASE(x, y);
}

/* A name of 255 bytes: the name of the temporary file is cut between characters. */
TEST(a_name_as_long_as_can_be) {
    char name[256] = "x";
    Tensor *x = tensor_ones(SHAPE(2));
    while (strlen(name) < 255) strcat(name, "\xc3\xa9");
    saved_by_others = x;
    status_of(start_saving(name, die));
    glob_t found;
    ck_assert_int_eq(glob(".x*.tapehead-*", 0, NULL, &found), 0);
    ck_assert_int_eq(found.gl_pathc, 1);
    ck_assert_int_eq(strstr(found.gl_pathv[0], ".tapehead-") - found.gl_pathv[0], 200);
    globfree(&found);
    ck_assert(tensor_save_npy(x, name));
    ck_assert_int_eq(entries(".", false), 1);
    tensor_release(x);
}

/* ---- places that can be written, and that cannot --------------------------------------------- */

TEST(where_nothing_can_be_written) {
    Tensor *x = tensor_ones(SCALAR);
    TensorDict *dict = tensor_dict_new();
    if (access("/dev/full", W_OK) == 0) {
        FAILS(tensor_save_npy(x, "/dev/full"),
              "save_npy: /dev/full: it cannot be written: No space left on device");
        FAILS(tensor_save_safetensors(dict, "/dev/full"),
              "save_safetensors: /dev/full: it cannot be written: No space left on device");
    }
    FAILS(tensor_save_npy(NULL, "x.npy"), "save_npy: the tensor is NULL");
    FAILS(tensor_save_npy(x, NULL), "save_npy: the path is NULL");
    FAILS(tensor_save_safetensors(NULL, "x.safetensors"), "save_safetensors: the dict is NULL");
    ck_assert_int_eq(entries(".", false), 0);
    tensor_dict_free(dict);
    tensor_release(x);
}

/* Memory runs out at the beginning of the header, or later. */
TEST(a_header_without_memory_leaves_the_old_file) {
    TensorDict *dict = tensor_dict_new();
    ck_assert(tensor_dict_set_metadata(dict, "key", "value"));
    ck_assert(tensor_save_safetensors(dict, "x.safetensors"));
    const Bytes before = slurp("x.safetensors");
    static const char *const calls[] = {"realloc", "growth"};
    for (int i = 0; i < 2; i++) {
        failing = calls[i];
        ck_assert(!tensor_save_safetensors(dict, "x.safetensors"));
        failing = "";
        expect_error("save_safetensors: x.safetensors: out of memory for its header");
        const Bytes after = slurp("x.safetensors");
        ck_assert(after.size == before.size && !memcmp(after.bytes, before.bytes, after.size));
        ck_assert_int_eq(entries(".", false), 1);
    }
    tensor_dict_free(dict);
}

/* 2001 pairs of 50 KB each: more than 100 MB. With a shorter pair it is as long as it may be. */
TEST(a_header_that_is_too_long) {
    static char key[24997];
    memset(key, 'x', sizeof key - 1);
    Metadata pair = {key, key}, pairs[2001];
    for (int i = 0; i < COUNT(pairs); i++) pairs[i] = pair;
    const TensorDict dict = {.n_metadata = COUNT(pairs), .metadata = pairs};
    FAILS(tensor_save_safetensors(&dict, "x.safetensors"),
          "save_safetensors: x.safetensors: its header of 100046016 bytes is longer than "
          "100000000");
    ck_assert_int_eq(entries(".", false), 0);
    pairs[0] = (Metadata){key + 46016 / 2, key + 46016 / 2};
    ck_assert_msg(tensor_save_safetensors(&dict, "/dev/null"), "%s", tensor_error());
    pairs[0].value--;
    FAILS(tensor_save_safetensors(&dict, "/dev/null"),
          "save_safetensors: /dev/null: its header of 100000008 bytes is longer than 100000000");
}

/* ---- files of one's own ---------------------------------------------------------------------- */

static void write_words(FILE *file, const void *words) { fputs(words, file); }

static void write_and_give_up(FILE *file, const void *words) {
    fputs(words, file);
    tensor_fail("there are no more words");
}

/* Writes more than the buffer of the stream holds. */
static void write_much(FILE *file, const void *byte) {
    for (int i = 0; i < 100000; i++) fputc(*(const char *)byte, file);
}

static void expect_words(const char *path, const char *words) {
    const Bytes all = slurp(path);
    ck_assert_int_eq(all.size, strlen(words));
    ck_assert_mem_eq(all.bytes, words, all.size);
}

TEST(files_of_ones_own) {
    ck_assert(tensor_write_file("words", write_words, "old\n"));
    *calls_made = '\0';
    ck_assert(tensor_write_file("words", write_words, "new\n"));
    ck_assert_str_eq(calls_made, "fsync, rename, fsync of the directory, ");
    expect_words("words", "new\n");
    FAILS(tensor_write_file("words", write_and_give_up, "newer\n"), "there are no more words");
    if (access("/dev/full", W_OK) == 0)
        FAILS(tensor_write_file("/dev/full", write_much, "x"),
              "write_file: /dev/full: it cannot be written: No space left on device");
    FAILS(tensor_write_file("words", NULL, NULL), "write_file: the function is NULL");
    FAILS(tensor_write_file(NULL, write_words, ""), "write_file: the path is NULL");
    tensor_fail("an error from before");
    FAILS(tensor_write_file("words", write_words, "newest\n"), "an error from before");
    expect_words("words", "new\n");
    ck_assert_int_eq(entries(".", false), 1);
}

TEST(a_file_of_ones_own_that_grows_too_large) {
    struct rlimit before;
    ck_assert(tensor_write_file("words", write_words, "old\n"));
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){2048, before.rlim_max});
    ck_assert(!tensor_write_file("words", write_much, "x"));
    setrlimit(RLIMIT_FSIZE, &before);
    expect_error("write_file: words: it cannot be written: File too large");
    expect_words("words", "old\n");
    ck_assert_int_eq(entries(".", false), 1);
}

TEST(what_can_be_written) {
    static const struct {
        const char *path;
        int error;
    } cannot[] = {
        {"", ENOENT},         {".", EISDIR},
        {"folder/", EISDIR},  {"nowhere/words", ENOENT},
        {"nowhere/", ENOENT}, {"words/words", ENOTDIR},
        {"astray", ENOENT},   {"loop", ELOOP},
        {"there", ELOOP},
    };
    struct stat status;
    Tensor *x = tensor_ones(SCALAR);
    spit("words", "old", 3);
    ck_assert(!mkdir("folder", 0700) && !symlink("nowhere/words", "astray") &&
              !symlink("loop", "loop") && !symlink("folder/words", "link") &&
              !symlink("back", "there") && !symlink("there", "back"));
    const int before = entries(".", false);
    static const char *const can[] = {"words", "new", "folder/new", "link", "/dev/null"};
    for (int i = 0; i < COUNT(can); i++)
        ck_assert_msg(tensor_can_write_file(can[i]), "%s: %s", can[i], tensor_error());
    for (int i = 0; i < COUNT(cannot); i++) {
        const char *sentence = format("write_file: %s: it cannot be written: %s", cannot[i].path,
                                      strerror(cannot[i].error));
        FAILS(tensor_can_write_file(cannot[i].path), sentence);
        FAILS(tensor_write_file(cannot[i].path, write_words, "new"), sentence);
        FAILS(tensor_save_npy(x, cannot[i].path), format("save_npy%s", strchr(sentence, ':')));
    }
    ck_assert(lstat("there", &status) == 0 && S_ISLNK(status.st_mode));
    tensor_release(x);
    ck_assert_int_eq(entries(".", false), before);
    expect_words("words", "old");
}

/* Runs as a user who is not root, because root may write everywhere. */
TEST(where_nothing_may_be_written) {
    Tensor *x = tensor_ones(SCALAR);
    Tensor *y = tensor_zeros(SCALAR);
    const uid_t user = geteuid();
    ck_assert(tensor_save_npy(x, "x.npy") && tensor_save_npy(x, "y.npy"));
    ck_assert(!chmod("y.npy", 0444) && !chmod("x.npy", 0666) && !chmod(".", 0777));
    ck_assert(user != 0 || seteuid(65534) == 0);
    FAILS(tensor_save_npy(y, "y.npy"), "save_npy: y.npy: it cannot be written: Permission denied");
    ck_assert(!tensor_can_write_file("y.npy") && tensor_error());
    tensor_clear_error();
    ck_assert(tensor_can_write_file("x.npy") && tensor_can_write_file("z.npy"));
    ck_assert(seteuid(user) == 0 && chmod(".", 0555) == 0);
    ck_assert(user != 0 || seteuid(65534) == 0);
    FAILS(tensor_save_npy(y, "x.npy"), "save_npy: x.npy: it cannot be written: Permission denied");
    ck_assert(!tensor_can_write_file("x.npy")); /* no temporary file can be made in the directory */
    expect_error("write_file: x.npy: it cannot be written: Permission denied");
    ck_assert(tensor_can_write_file("/dev/null"));
    FAILS(tensor_can_write_file("z.npy"),
          "write_file: z.npy: it cannot be written: Permission denied");
    ck_assert(seteuid(user) == 0 && chmod(".", 0700) == 0);
    for (int i = 0; i < 2; i++) {
        Tensor *left = tensor_load_npy(i ? "y.npy" : "x.npy");
        expect_equal("what was there before", left, x);
        tensor_release(left);
    }
    ck_assert_int_eq(entries(".", false), 2);
    RELEASE(x, y);
}

static int mode_of(const char *path) {
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_mode & 0777;
}

TEST(rights_of_what_is_written) {
    Tensor *x = tensor_ones(SCALAR);
    const mode_t before = umask(027);
    ck_assert(tensor_save_npy(x, "x.npy"));
    ck_assert_int_eq(mode_of("x.npy"), 0640);
    ck_assert_int_eq(chmod("x.npy", 0604), 0);
    ck_assert(tensor_save_npy(x, "x.npy"));
    ck_assert_int_eq(mode_of("x.npy"), 0604);
    umask(before);
    tensor_release(x);
}

TEST(links_are_followed) {
    Tensor *x = tensor_ones(SCALAR);
    struct stat status;
    ck_assert(!mkdir("folder", 0700) && !symlink("folder/x.npy", "link") &&
              !symlink("link", "link2"));
    ck_assert(tensor_save_npy(x, "folder/x.npy") && tensor_fill(x, 2));
    ck_assert(tensor_save_npy(x, "link2"));
    ck_assert(lstat("link", &status) == 0 && S_ISLNK(status.st_mode));
    ck_assert(lstat("folder/x.npy", &status) == 0 && S_ISREG(status.st_mode));
    Tensor *y = tensor_load_npy("link");
    expect_equal("what the link leads to", y, x);
    ck_assert_int_eq(remove("folder/x.npy"), 0);
    RELEASE(x, y);
}

/* Follows links with relative targets, and one with an absolute target. */
TEST(links_that_lead_nowhere_are_followed) {
    Tensor *x = tensor_ones(SHAPE(2));
    struct stat status;
    ck_assert(!mkdir("folder", 0700) && !mkdir("folder/inner", 0700) &&
              !symlink("folder/second", "first") &&
              !symlink(format("%s/folder/inner/%s/third", folder, ".."), "folder/second") &&
              !symlink("inner/x.npy", "folder/third"));
    ck_assert(tensor_save_npy(x, "first"));
    ck_assert(lstat("first", &status) == 0 && S_ISLNK(status.st_mode));
    ck_assert(lstat("folder/inner/x.npy", &status) == 0 && S_ISREG(status.st_mode));
    Tensor *y = tensor_load_npy("first");
    expect_equal("what the links lead to", y, x);
    ck_assert(!remove("folder/inner/x.npy") && !rmdir("folder/inner") && !remove("folder/second") &&
              !remove("folder/third"));
    RELEASE(x, y);
}

/* If root saves to the file of another user, the file keeps its owner. */
TEST(a_file_keeps_its_owner) {
    enum { OWNER = 65534, GROUP = 12345 };
    Tensor *x = tensor_ones(SHAPE(2));
    struct stat status;
    ck_assert(tensor_save_npy(x, "x.npy") && !chmod("x.npy", 0640));
    const bool may = chown("x.npy", OWNER, GROUP) == 0;
    ck_assert(may || geteuid() != 0);
    ck_assert(!may || tensor_save_npy(x, "x.npy"));
    ck_assert_int_eq(stat("x.npy", &status), 0);
    ck_assert(!may || (status.st_uid == OWNER && status.st_gid == GROUP));
    ck_assert_int_eq(status.st_mode & 0777, 0640);
    tensor_release(x);
}

/* Standard output and pipes are written to, not replaced. */
TEST(devices_and_pipes) {
    Tensor *x = counting(SHAPE(2, 3), F32);
    const int out = dup(STDOUT_FILENO), file = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    fflush(stdout);
    dup2(file, STDOUT_FILENO);
    ck_assert(tensor_save_npy(x, "/dev/stdout"));
    ck_assert(tensor_save_npy(x, open_descriptors() ? "/proc/self/fd/1" : "/dev/fd/1"));
    dup2(out, STDOUT_FILENO);
    close(out);
    close(file);
    Bytes all = slurp("out"), one = slurp(golden("float32.npy"));
    ck_assert_int_eq(all.size, 2 * one.size);
    ck_assert(!memcmp(all.bytes, one.bytes, one.size));
    ck_assert(!memcmp(all.bytes + one.size, one.bytes, one.size));
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    const int pipe = open("pipe", O_RDWR); /* a reader, so that opening it for writing does not
                                            * wait */
    failing = "fclose";
    with = EDQUOT;
    ck_assert(!tensor_save_npy(x, "/dev/null"));
    failing = "";
    expect_error(format("save_npy: /dev/null: it cannot be written: %s", strerror(EDQUOT)));
    ck_assert(tensor_save_npy(x, "pipe"));
    ck_assert_int_eq(read(pipe, all.bytes, sizeof all.bytes), one.size);
    ck_assert(!memcmp(all.bytes, one.bytes, one.size));
    close(pipe);
    tensor_release(x);
}

/* A file in /dev/shm is replaced like any other file. */
TEST(files_in_memory) {
    char path[] = "/dev/shm/tapehead-files-XXXXXX";
    const int file = mkstemp(path);
    if (file < 0) return; /* there is no /dev/shm */
    Tensor *x = counting(SHAPE(2, 3), F32);
    ck_assert(tensor_save_npy(x, path) && tensor_save_npy(x, path));
    expect_same_bytes(path, golden("float32.npy"));
    close(file);
    ck_assert_int_eq(unlink(path), 0);
    tensor_release(x);
}

TEST(what_cannot_be_read) {
    Tensor *x = tensor_ones(SHAPE(3));
    char path[400] = "./";
    ck_assert(tensor_save_npy(x, "x.npy") && !mkfifo("pipe", 0600));
    static const struct {
        const char *path, *failing;
        int error;
        const char *sentence;
    } wrong[] = {
        {"y.npy", "", 0, "load_npy: y.npy: it cannot be opened: No such file or directory"},
        {".", "", 0, "load_npy: .: it is not a regular file"},
        {"pipe", "", 0, "load_npy: pipe: it is not a regular file"},
        {"/dev/zero", "", 0, "load_npy: /dev/zero: it is not a regular file"},
        {"x.npy", "fdopen", ENOMEM, "load_npy: x.npy: it cannot be opened: out of memory"},
        {"x.npy", "fstat", EACCES, "load_npy: x.npy: it cannot be opened: Permission denied"},
#ifdef __GLIBC__ /* musl says no reason */
        {"x.npy", "mode", 0, "load_npy: x.npy: it cannot be read: Bad file descriptor"},
#endif
        {"x.npy", "length", 0, "load_npy: x.npy: it cannot be read: it ends too early"},
        {NULL, "", 0, "load_npy: the path is NULL"},
    };
    for (int i = 0; i < COUNT(wrong); i++) {
        failing = wrong[i].failing;
        with = wrong[i].error;
        ck_assert_ptr_null(tensor_load_npy(wrong[i].path));
        failing = "";
        expect_error(wrong[i].sentence);
    }
    while (strlen(path) < 300) strcat(path, "./"); /* an error shows only the end of a long path */
    strcat(path, "y.npy");
    FAILS(tensor_load_npy(path),
          format("load_npy: ...%s: it cannot be opened: No such file or directory",
                 path + strlen(path) - 120));
    *path = '\0';
    while (strlen(path) < 300) strcat(path, "\xc3\xa9/"); /* 120 bytes begin inside a letter */
    strcat(path, "yyy.npy");
    FAILS(tensor_load_npy(path),
          format("load_npy: ...%s: it cannot be opened: No such file or directory",
                 path + strlen(path) - 119));
    tensor_release(x);
}

/* ---- checkpoints ---------------------------------------------------------------------------- */

static MultiHeadAttention *attention_new(int64_t size) {
    MultiHeadAttentionConfig config = {.num_hiddens = 4, .num_heads = 2, .bias = true};
    config.query_size = size;
    config.key_size = size;
    config.value_size = size;
    MultiHeadAttention *attention = nn_multi_head_attention_new(config);
    ck_assert_msg(attention != NULL, "%s", tensor_error());
    nn_train(attention, false);
    return attention;
}

static Tensor *attend(MultiHeadAttention *attention, Tensor *x) {
    ck_assert(tape_begin_no_grad());
    Tensor *y = nn_multi_head_attention_forward(attention, x, x, x, (AttentionMask){0});
    y = tape_end_keeping(y);
    ck_assert_msg(y != NULL, "%s", tensor_error());
    return y;
}

static const char *const attention_names[] = {"W_q.weight", "W_q.bias", "W_k.weight", "W_k.bias",
                                              "W_v.weight", "W_v.bias", "W_o.weight", "W_o.bias"};

CASE("checkpoint", .setup = setup, .teardown = teardown)
TEST(models_there_and_back) {
    MultiHeadAttention *one = attention_new(3);
    MultiHeadAttention *other = attention_new(3);
    MultiHeadAttention *lazy = attention_new(0);
    ck_assert_msg(nn_save(one, "x.safetensors"), "%s", tensor_error());
    TensorDict *dict = tensor_load_safetensors("x.safetensors");
    ck_assert_int_eq(dict->n, 8);
    ck_assert_str_eq(tensor_dict_metadata(dict, "format"), "pt");
    for (int i = 0; i < 8; i++)
        expect_equal(attention_names[i], tensor_dict_get(dict, attention_names[i]),
                     nn_parameter(one, attention_names[i]));
    const uint32_t version = other->W_q->weight->storage->version;
    ck_assert(nn_load(other, "x.safetensors"));
    ck_assert_uint_eq(other->W_q->weight->storage->version, version + 1);
    ck_assert(nn_freeze(lazy, "W_o", true));
    const Generator before = *tensor_generator_current();
    ck_assert_msg(nn_load(lazy, "x.safetensors"), "%s", tensor_error());
    ck_assert_mem_eq(&before, tensor_generator_current(), sizeof before); /* loading draws no
                                                                           * random numbers */
    ck_assert(!lazy->W_o->weight->requires_grad && lazy->W_q->weight->requires_grad);
    ck_assert(lazy->W_q->weight->is_parameter);
    ck_assert_str_eq(lazy->W_q->weight->name, "W_q.weight");
    Tensor *x = tensor_randn(SHAPE(2, 5, 3));
    Tensor *y[3];
    MultiHeadAttention *all[] = {one, other, lazy};
    for (int i = 0; i < 3; i++) y[i] = attend(all[i], x);
    expect_equal("a loaded model's output", y[1], y[0]);
    expect_equal("a lazy model's output", y[2], y[0]);
    ck_assert_int_eq(lazy->W_q->in_features, 3);
    for (int i = 0; i < 3; i++) {
        tensor_release(y[i]);
        nn_free(all[i]);
    }
    tensor_release(x);
    tensor_dict_free(dict);
}

TEST(a_lazy_model_is_printed_as_what_it_has_loaded) {
    Linear *linear = nn_linear_new(3, 2, true);
    Linear *lazy = nn_linear_new(NN_LAZY, 2, true);
    ck_assert(nn_save(linear, "x.safetensors") && nn_load(lazy, "x.safetensors"));
    ck_assert(nn_load(lazy, "x.safetensors")); /* the layer is no longer lazy: the parameter is
                                                * overwritten */
    expect_printed_module(lazy, "LazyLinear(in_features=3, out_features=2, bias=True)\n");
    nn_free(linear);
    nn_free(lazy);
}

/* Backward fails if loading has overwritten a parameter that it reads. */
TEST(loading_is_a_write_in_place) {
    Linear *linear = nn_linear_new(2, 1, false);
    Tensor *x = ag_requires_grad(tensor_ones(SHAPE(1, 2)));
    ck_assert(nn_save(linear, "x.safetensors"));
    ck_assert(tape_begin());
    Tensor *y = ag_sum(nn_linear_forward(linear, x));
    ck_assert(nn_load(linear, "x.safetensors"));
    FAILS(ag_backward(y),
          "backward: linear needs its input w (1, 2) as it was, but copy_from has written over "
          "it since");
    tape_end();
    tensor_release(x);
    nn_free(linear);
}

TEST(two_models_in_one_file) {
    Linear *a = nn_linear_new(2, 3, true);
    Linear *b = nn_linear_new(3, 2, false);
    Linear *c = nn_linear_new(2, 3, true);
    Linear *d = nn_linear_new(NN_LAZY, 2, false);
    TensorDict *dict = tensor_dict_new();
    ck_assert(nn_state_dict(a, "encoder.", dict) && nn_state_dict(b, "decoder.", dict));
    ck_assert(tensor_save_safetensors(dict, "x.safetensors"));
    tensor_dict_free(dict);
    dict = tensor_load_safetensors("x.safetensors");
    ck_assert_int_eq(dict->n, 3);
    ck_assert_msg(nn_load_state_dict(c, "encoder.", dict), "%s", tensor_error());
    ck_assert_msg(nn_load_state_dict(d, "decoder.", dict), "%s", tensor_error());
    expect_equal("weight", c->weight, a->weight);
    expect_equal("bias", c->bias, a->bias);
    expect_equal("lazy weight", d->weight, b->weight);
    ck_assert_ptr_ne(d->weight, tensor_dict_get(dict, "decoder.weight")); /* a copy */
    ck_assert(!tensor_dict_get(dict, "decoder.weight")->requires_grad);
    FAILS(nn_load_state_dict(c, "", dict),
          "load_state_dict: the dict does not fit Linear: missing: \"weight\", \"bias\"; "
          "unexpected: \"decoder.weight\", \"encoder.bias\", \"encoder.weight\"");
    tensor_dict_free(dict);
    nn_free(a);
    nn_free(b);
    nn_free(c);
    nn_free(d);
}

/* Loads the dict, expects this error message, and checks that the module has not changed. */
static void expect_no_fit(void *module, TensorDict *dict, const char *sentence) {
    Tensor **slot[8];
    Tensor *before[8];
    uint32_t version[8];
    const int n = parameter_slots(module, slot, 8);
    for (int i = 0; i < n; i++) {
        before[i] = *slot[i] ? tensor_clone(*slot[i]) : NULL;
        version[i] = *slot[i] ? (*slot[i])->storage->version : 0;
    }
    ck_assert(tensor_save_safetensors(dict, "x.safetensors"));
    FAILS(nn_load(module, "x.safetensors"), sentence);
    for (int i = 0; i < n; i++) {
        ck_assert((*slot[i] == NULL) == (before[i] == NULL));
        if (!before[i]) continue;
        expect_equal("a parameter", *slot[i], before[i]);
        ck_assert_uint_eq((*slot[i])->storage->version, version[i]);
        tensor_release(before[i]);
    }
}

static void expect_names(const char *what, char *const *names, int n, const char *const *expected,
                         int m) {
    ck_assert_msg(n == m, "%s: %d names", what, n);
    for (int i = 0; i < n; i++) ck_assert_str_eq(names[i], expected[i]);
}

/* torch's load_state_dict(strict=False): what has a name on both sides is loaded, the rest is
 * listed, in the order of the model and of the file. */
TEST(a_load_that_is_not_strict) {
    static const char *const missing[] = {"W_k.weight", "W_k.bias", "W_o.weight", "W_o.bias"};
    static const char *const unexpected[] = {"W_q.gain", "head.weight"};
    MultiHeadAttention *from = attention_new(3);
    MultiHeadAttention *to = attention_new(0); /* to is lazy */
    TensorDict *dict = tensor_dict_new();
    TensorDict *part = tensor_dict_new();
    ck_assert(nn_state_dict(from, "", dict));
    for (int i = 0; i < dict->n; i++)
        if (strncmp(dict->entry[i].name, "W_k", 3) != 0 &&
            strncmp(dict->entry[i].name, "W_o", 3) != 0)
            ck_assert(tensor_dict_set(part, dict->entry[i].name, dict->entry[i].tensor));
    put(part, unexpected[1], tensor_ones(SHAPE(2)));
    put(part, unexpected[0], tensor_ones(SHAPE(1)));
    ck_assert(tensor_save_safetensors(part, "x.safetensors"));
    IncompatibleKeys *keys = nn_load_not_strict(to, "x.safetensors");
    ck_assert_msg(keys != NULL, "%s", tensor_error());
    expect_names("missing", keys->missing_keys, keys->num_missing, missing, 4);
    expect_names("unexpected", keys->unexpected_keys, keys->num_unexpected, unexpected, 2);
    expect_equal("W_q.weight", to->W_q->weight, from->W_q->weight);
    expect_equal("W_v.bias", to->W_v->bias, from->W_v->bias);
    ck_assert(!to->W_k->weight && !to->W_k->bias && !to->W_o->weight); /* still lazy */
    nn_incompatible_keys_free(keys);
    ck_assert(nn_save(from, "x.safetensors"));
    keys = nn_load_not_strict(to, "x.safetensors");
    ck_assert(keys && keys->num_missing == 0 && keys->num_unexpected == 0);
    expect_equal("W_k.weight", to->W_k->weight, from->W_k->weight);
    nn_incompatible_keys_free(keys);
    nn_incompatible_keys_free(NULL);
    tensor_dict_free(dict);
    tensor_dict_free(part);
    nn_free(from);
    nn_free(to);
}

/* As in PyTorch, another shape is an error, strict or not; so is another type. Nothing changes. */
TEST(what_no_load_accepts) {
    Linear *linear = nn_linear_new(2, 3, true);
    Tensor *before = tensor_clone(linear->bias);
    TensorDict *dict = tensor_dict_new();
    put(dict, "model.bias", tensor_zeros(SHAPE(3)));
    put(dict, "other", tensor_zeros(SHAPE(3)));
    put(dict, "model.weight", tensor_zeros(SHAPE(2, 3)));
    FAILS(nn_load_state_dict_not_strict(linear, "model.", dict),
          "load_state_dict_not_strict: the dict does not fit Linear: \"model.weight\" is "
          "float32 (2, 3) and should be float32 (3, 2)");
    put(dict, "model.weight", counting(SHAPE(3, 2), F64));
    FAILS(nn_load_state_dict_not_strict(linear, "model.", dict),
          "load_state_dict_not_strict: the dict does not fit Linear: \"model.weight\" is "
          "float64 (3, 2) and should be float32 (3, 2)");
    expect_equal("bias", linear->bias, before);
    IncompatibleKeys *keys = nn_load_state_dict_not_strict(linear, "model.b", dict);
    ck_assert_msg(keys != NULL, "%s", tensor_error());
    static const char *const missing[] = {"model.bweight", "model.bbias"};
    expect_names("missing", keys->missing_keys, keys->num_missing, missing, 2);
    expect_names("unexpected", keys->unexpected_keys, keys->num_unexpected,
                 (const char *const[]){"model.bias"}, 1);
    expect_equal("bias", linear->bias, before);
    nn_incompatible_keys_free(keys);
    FAILS(nn_load_state_dict_not_strict(linear, "", NULL),
          "load_state_dict_not_strict: the dict is NULL");
    FAILS(nn_load_state_dict_not_strict(NULL, "", dict),
          "load_state_dict_not_strict: the module is NULL");
    FAILS(nn_load_not_strict(NULL, "x.safetensors"), "load_not_strict: the module is NULL");
    FAILS(nn_load_not_strict(linear, "x.safetensors"),
          "load_safetensors: x.safetensors: it cannot be opened: No such file or directory");
    tensor_release(before);
    tensor_dict_free(dict);
    nn_free(linear);
}

/* A parameter that was let go can be neither overwritten nor read. Then the load changes no other
 * parameter, either. */
TEST(a_model_that_was_let_go) {
    Linear *linear = nn_linear_new(3, 2, true);
    Linear *other = nn_linear_new(3, 2, true);
    TensorDict *dict = tensor_dict_new();
    TensorDict *theirs = tensor_dict_new();
    ck_assert(nn_state_dict(other, "", dict) && nn_state_dict(other, "", theirs));
    ck_assert(tensor_save_safetensors(dict, "x.safetensors"));
    Tensor *before = tensor_clone(linear->weight);
    tape_begin();
    ag_let_go(linear->bias);
    FAILS(nn_load(linear, "x.safetensors"),
          "load: x.safetensors does not fit Linear: \"bias\" itself was let go");
    FAILS(nn_load_state_dict(linear, "", dict),
          "load_state_dict: the dict does not fit Linear: \"bias\" itself was let go");
    FAILS(nn_state_dict(linear, "mine.", theirs),
          "state_dict: \"mine.bias\" was let go, and its elements with it");
    ck_assert_int_eq(theirs->n, 2);
    nn_set_parameter(linear, &linear->bias, tensor_zeros(SHAPE(2)));
    ag_let_go(other->bias);
    FAILS(nn_load_state_dict(linear, "", dict),
          "load_state_dict: the dict does not fit Linear: the dict's \"bias\" was let go");
    tape_end();
    expect_equal("weight", linear->weight, before);
    tensor_dict_free(dict);
    tensor_dict_free(theirs);
    tensor_release(before);
    nn_free(linear);
    nn_free(other);
}

/* A parameter is loaded from a transposed view of itself. */
TEST(a_dict_may_hold_views_of_the_model) {
    Linear *linear = nn_linear_new(3, 3, false);
    TensorDict *dict = tensor_dict_new();
    Tensor *view = tensor_as_strided(linear->weight, SHAPE(3, 3), (int64_t[]){1, 3}, 0);
    Tensor *turned = tensor_clone(view);
    ck_assert(tensor_dict_set(dict, "weight", view) && nn_load_state_dict(linear, "", dict));
    expect_equal("weight", linear->weight, turned);
    tensor_dict_free(dict);
    RELEASE(view, turned);
    nn_free(linear);
}

TEST(models_that_do_not_fit) {
    MultiHeadAttention *attention = attention_new(3);
    MultiHeadAttention *lazy = attention_new(0);
    Linear *linear = nn_linear_new(3, 2, true);
    TensorDict *dict = tensor_dict_new();
    expect_no_fit(attention, dict,
                  "load: x.safetensors does not fit MultiHeadAttention: missing: \"W_q.weight\", "
                  "\"W_q.bias\", \"W_k.weight\" and 5 more");
    put(dict, "weight", counting(SHAPE(2, 3), F32));
    expect_no_fit(linear, dict, "load: x.safetensors does not fit Linear: missing: \"bias\"");
    put(dict, "bias", counting(SHAPE(2), F32));
    put(dict, "a\nb", counting(SHAPE(2), F32));
    expect_no_fit(linear, dict, "load: x.safetensors does not fit Linear: unexpected: \"a?b\"");
    put(dict, "bias", counting(SHAPE(3), F32));
    put(dict, "weight", counting(SHAPE(2, 3), F64));
    expect_no_fit(
        linear, dict,
        "load: x.safetensors does not fit Linear: unexpected: \"a?b\"; \"weight\" is "
        "float64 (2, 3) and should be float32 (2, 3), \"bias\" is float32 (3,) and should "
        "be float32 (2,)");
    tensor_dict_free(dict);
    dict = tensor_dict_new();
    ck_assert(nn_state_dict(attention, "", dict));
    put(dict, "W_o.weight", counting(SHAPE(3, 4), F32));
    put(dict, "W_q.bias", counting(SHAPE(4, 1), F32));
    put(dict, "W_k.bias", counting(SHAPE(4), I64));
    expect_no_fit(lazy, dict,
                  "load: x.safetensors does not fit MultiHeadAttention: \"W_q.bias\" is float32 "
                  "(4, 1) and should be float32 (4,), \"W_k.bias\" is int64 (4,) and should be "
                  "float32 (4,), \"W_o.weight\" is float32 (3, 4) and should be float32 (4, -1)");
    tensor_dict_free(dict);
    nn_free(attention);
    nn_free(lazy);
    nn_free(linear);
}

/* A parameter without a shape pattern takes any shape, but only a float type. */
typedef struct {
    Module module;
    Tensor *w;
} Bare;
static const ModuleClass bare_class = {"Bare", sizeof(Bare), NULL, NULL};

TEST(lazy_with_a_shape) {
    Bare *bare = nn_module_new(&bare_class);
    ck_assert(nn_add_lazy_parameter(bare, "w", &bare->w, SHAPE(2, NN_LAZY)));
    ck_assert_ptr_null(bare->w);
    TensorDict *dict = tensor_dict_new();
    put(dict, "w", counting(SHAPE(3, 2), F32));
    expect_no_fit(bare, dict,
                  "load: x.safetensors does not fit Bare: \"w\" is float32 (3, 2) and should be "
                  "float32 (2, -1)");
    put(dict, "w", counting(SHAPE(2, 3), F32));
    ck_assert(nn_load_state_dict(bare, "", dict));
    expect_equal("w", bare->w, tensor_dict_get(dict, "w"));
    tensor_dict_free(dict);
    nn_free(bare);
}

TEST(lazy_without_a_rule) {
    Bare *bare = nn_module_new(&bare_class);
    nn_add_parameter(bare, "w", &bare->w, NULL);
    TensorDict *dict = tensor_dict_new();
    put(dict, "w", counting(SHAPE(2, 3), I64));
    expect_no_fit(bare, dict,
                  "load: x.safetensors does not fit Bare: \"w\" is int64 (2, 3) and should be "
                  "float32 (2, 3)");
    put(dict, "w", counting(SHAPE(2, 3), F32));
    ck_assert(nn_load_state_dict(bare, "", dict));
    expect_equal("w", bare->w, tensor_dict_get(dict, "w"));
    tensor_dict_free(dict);
    nn_free(bare);
}

TEST(checkpoint_errors) {
    MultiHeadAttention *lazy = attention_new(0);
    TensorDict *dict = tensor_dict_new();
    char prefix[129];
    memset(prefix, 'p', 128);
    prefix[128] = '\0';
    FAILS(nn_save(lazy, "x.safetensors"), "save: \"W_q.weight\" is lazy, the first input makes it");
    FAILS(nn_state_dict(lazy, "model.", dict),
          "state_dict: \"model.W_q.weight\" is lazy, the first input makes it");
    ck_assert_int_eq(dict->n, 0);
    FAILS(nn_load(lazy, "x.safetensors"),
          "load_safetensors: x.safetensors: it cannot be opened: No such file or directory");
    FAILS(nn_save(NULL, "x.safetensors"), "save: the module is NULL");
    FAILS(nn_load(NULL, "x.safetensors"), "load: the module is NULL");
    FAILS(nn_save(lazy->attention, NULL), "save_safetensors: the path is NULL");
    FAILS(nn_load(lazy, NULL), "load_safetensors: the path is NULL");
    FAILS(nn_state_dict(lazy, NULL, dict), "state_dict: the prefix is NULL");
    FAILS(nn_state_dict(lazy, "", NULL), "state_dict: the dict is NULL");
    FAILS(nn_load_state_dict(lazy, "", NULL), "load_state_dict: the dict is NULL");
    FAILS(nn_load_state_dict(lazy, prefix, dict),
          "load_state_dict: the prefix is longer than 127 bytes");
    prefix[127] = '\0';
    ck_assert(!nn_load_state_dict(lazy, prefix, dict));
    expect_error_like("load_state_dict: the dict does not fit MultiHeadAttention: missing: \"pppp",
                      "p...\" and 5 more");
    ck_assert_int_eq(entries(".", false), 0);
    tensor_dict_free(dict);
    nn_free(lazy);
}

TEST(paths_of_parameters) {
    static const char name[] = "a_name_of_23_characters";
    char path[600];
    Bare *root = nn_module_new(&bare_class);
    Bare *leaf = root;
    for (int i = 0; i < 22; i++) {
        Bare *child = nn_module_new(&bare_class);
        ck_assert(nn_add_child(leaf, name, child));
        leaf = child;
    }
    ck_assert(nn_add_parameter(leaf, "w", &leaf->w, tensor_ones(SCALAR)));
    const ModuleSlot *w = leaf->module.slots;
    ck_assert(nn_parameter_path(leaf, w, path, 2));
    ck_assert_str_eq(path, "w");
    ck_assert(nn_parameter_path(root, w, path, 22 * 24 + 2));
    ck_assert_int_eq(strlen(path), 22 * 24 + 1);
    ck_assert_ptr_eq(nn_parameter(root, path), leaf->w);
    FAILS(nn_parameter_path(root, w, path, 22 * 24 + 1),
          "parameter_path: the path has more than 529 bytes");
    FAILS(nn_parameter_path(leaf, w, path, 1), "parameter_path: the path has more than 1 byte");
    FAILS(nn_save(root, "x.safetensors"), "parameter_path: the path has more than 512 bytes");
    FAILS(nn_parameter_path(root, NULL, path, sizeof path), "parameter_path: an argument is NULL");
    Bare *stranger = nn_module_new(&bare_class);
    FAILS(nn_parameter_path(stranger, w, path, sizeof path),
          "parameter_path: \"w\" is not in this module");
    nn_free(stranger);
    nn_free(root);
}

/* ---- the suite ------------------------------------------------------------------------------ */

int main(void) { return run_tests("files"); }
