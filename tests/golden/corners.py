"""The corners of functions: NaN, infinities, ties, overflow, dimensions without elements, masks without a key.

PyTorch's samples do not have these cases. They are written as in generate.py: "numbers: inputs; numbers: inputs".
"""


def each(before, inputs, after=""):
    return "; ".join(before + x + after for x in inputs)


NUMBERS = "[0.,-0.,1,-1,inf,-inf,nan,1e-310,1e-40]"
LARGE = "[709.,710,-745,-746,88,89,-87,-104,40,-40,1e300,-1e300]"
ROWS = ["[[nan,1,2],[1,2,nan]]", "[[-inf,1,2],[0,-inf,-inf]]", "[[inf,1,2],[inf,-inf,inf]]",
        "[[-inf,-inf,-inf],[-1000.,0,1000]]", "[[1e308,-1e308,0],[0,90,91]]"]
ENDS = "[inf,-inf,0.,0,inf,-inf,1,-1] [0.,0,inf,-inf,inf,-inf,inf,-inf]; [nan,1,nan,inf] [1.,nan,nan,nan]"
KEEP = "[[true,false,true,true],[false,false,true,false],[false,false,false,false]]"
CORNERS = {
    **{name: NUMBERS for name in "neg abs square sqrt log log1p sin cos relu".split()},
    **{name: NUMBERS + "; " + LARGE for name in "exp tanh sigmoid gelu silu softplus".split()},
    "mul": "[0.,inf,nan] [inf,0,0]; i0,3 [1,-2,3]",
    "div": "[1.,0,-1,inf,3] [0.,0,0,inf,nan]",
    "pow": "[0.,0,0,2,-2,-2,0,nan,1] [0.,2,1,0,3,0.5,-1,0,nan]",
    "maximum": "[1.,2,3,-2] [1.,3,2,-2]; " + ENDS,
    "minimum": "[1.,2,3,-2] [1.,3,2,-2]; " + ENDS,
    "add": "i0,3 [1,-2,3]; [[3,-1,2],[0,5,-7]] 2",
    "scale": "0: [1.,inf,nan]",
    "pow_scalar": "-1: f2,3~0.5,2; 0: [0.,2,-3,nan,inf]; 2: [0.,2,-3,nan,inf]; "
                  "0.5: [0.,-0.,2,-3,inf,-inf]; -0.5: [0.,-0.,2,-3,inf,-inf]; 1.5: [0.,-0.,2,-3,inf,-inf]; "
                  "3: [0.,-2,-inf]",
    **{name: "[[nan],[inf]] [1.,nan,inf,-inf]; [[1,2,3],[-4,2**53,6]] [1,2**53+1,6]" for name in
       "eq ne lt le gt ge".split()},
    "where": "[true,false] [nan,1] [2.,inf]; [[true,false,true]] f2,3 f2,1",
    "masked_fill": "3: [nan,2,inf] [true,false,true]",
    "reshape": "0: [7]; 0: f1",
    "permute": "2 1 0: [[true,false,true],[false,false,true]]",
    "slice": "0 -100 -1: f3,2",
    "cat": "1: f0 f2,1 f0 f2,2; 0: f0 f0; 0: f0,2 f1,2",
    "masked_select": "[nan,2,3] [false,true,false]; f2,1 [true,false,true]; 2.5 true",
    "index_select": "0: 3.0 [0]; -1: 3.0 0; 1: f2,3 2; 0: [nan,1,inf] [2,2,0]; "
                    "0: [[5,2**53+1],[7,8]] [1,1,0]",
    "gather": "0: 3.0 [0,0]; 0: 3.0 0; -1: f3 1; 0: f2,3 i4,0; -2: f2,3,2 [[[0,2],[1,1],[0,0],[2,2]]]",
    "embedding": "f4,2 [3,0,3]; f3,2 i2,0",
    "tril": "1: [[nan,nan,nan],[1.,2,nan]]; -9: f2,2",
    "triu": "1: [[nan,nan,nan],[1.,2,nan]]; 9: f2,2",
    "sum": "b2,0; 7; true",
    "sum_dims": "0 1 0: i0,3; 1 1 -1: b2,0; 0 0: true; 0 0: f2,3",
    "mean": "f0",
    "mean_dims": "0 0: f2,3; 1 1 0: f0,2",
    "max_dim": each("1 0: ", ROWS) + "; 0 0: 3.0; 0 1: [[2.,nan],[2,nan],[1,5]]; 1 0: [[2,5,5],[3,3,1]]",
    "var_dim": "0 0: [[1.,2],[1,inf]]; 0 0: [[5.,-5]]",
    "argmax": each("1: ", ROWS) + "; 0: [[1.,nan,-inf],[1,nan,-inf],[0,5,-inf]]; "
              "1: [[2,5,5],[-3,-3,-4]]; 0: 3",
    "argmin": each("1: ", ROWS),
    "logsumexp": each("1: ", ROWS) + "; -1: 3.0",
    "softmax": each("1: ", ROWS) + "; -1: 3.0",
    "log_softmax": each("1: ", ROWS) + "; -1: 3.0",
    "matmul": "[[inf,0]] [[0.],[1]]; i2,0 i0,2; i1,1,2,3 i1,3,1",
    "linear": "f3 f2,3; f3 f2,3 f2; f0,3 f2,3 f2; [[3,-1,2],[0,5,-7]] [[1,0,2],[0,-3,1]] [10,20]",
    "masked_softmax": each("[", ROWS, "] [3]") + "; [[[1.,2,nan,inf]],[[1,2,3,nan]]] [2,3]; "
                      "f2,2,3 [[0,3],[1,2**62]]; [[[nan,nan]]] [0]; [[[nan,1,2]]] [1]",
    "attention_weights": f"-1 0 2 2: f4,3,4 [[[true]],[[false]]]; 0.5 0 2 2: f4,3,4 {KEEP}; "
                         f"0.5 0 2 4: f8,3,4 f2,3,4; "
                         f"0.5 1 2 7: f8,3,4 [[1,2,4],[0,9,3],[1,2,4],[0,9,3]] {KEEP} f2,3,4; "
                         "1 0 1 2: [[[nan,1,2,inf],[inf,-inf,nan,3]]] "
                         "[[false,true,true,false],[false,true,false,true]]; "
                         "1 0 1 2: [[[nan,1,2,inf]]] [[true,false,true,true]]; "
                         "1 1 1 0: [[[1,nan,inf],[2.,1,nan],[-inf,-inf,-inf]]]",
    "attention": f"0 0 2: f2,2,3,2 f2,2,4,2 f2,2,4,3 {KEEP}",
    "dropout": "0.1: f30; 1: [1.,-2,3]; 0.5: f",
    "mse_loss": "; ".join(f"{r}: 1.5 2.; {r}: [nan,inf,1] [1.,2,-inf]" for r in range(3)),
    "cross_entropy": "; ".join(
        f"-100 {r}: f3 1; -1 {r}: f2,3,2 [[0,-1],[2,1]]; "
        f"0 {r}: f2,3,2,2 [[[0,1],[2,2]],[[1,0],[0,1]]]; 5 {r}: f2,3 [5,5]; 5 {r}: f2,0 [5,5]; "
        + each(f"-100 {r}: ", ROWS, " [1,0]") for r in range(3)),
    "layer_norm": each("1e-5: ", ROWS[:3], " [1.,-2,3] [0.,1,-1]") + "; 0: [[3.,3,3],[1,2,3]] f3; "
                  "1e-5: f2,0 f0 f0; 0.1: f3,1 f1 f1",
}
