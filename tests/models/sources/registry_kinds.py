"""Small networks of the kinds that registries hold, with random weights: what their inputs mean is hard to see.

    for name, make in KINDS.items():
        model = make()

Each has the inputs, the windows and the divisors of its kind: lengths, sampling rates, sizes of images, prompts.
"""

from collections.abc import Callable

import numpy as np
import onnx
from onnx import numpy_helper, parser

from tests.models.sources.voice_detector import voice_detector


def _model(text: str, **weights: np.ndarray | tuple[int, ...]) -> onnx.ModelProto:
    """A model of opset 18; a weight is an array, or the shape of random numbers."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}')
    rng = np.random.default_rng(len(text))
    for name, weight in weights.items():
        array = weight
        if isinstance(weight, tuple):
            array = (rng.standard_normal(weight) / np.sqrt(max(1, np.prod(weight[1:])))).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    onnx.checker.check_model(model)
    return model


def ocr_recogniser() -> onnx.ModelProto:
    """Lines of text of height 48 and any width: pools that halve the height alone, then a class for each column."""
    return _model("""recogniser (float[B,3,48,W] x) => (float[B,T,97] y) <int64[1] two = {2}> {
          a = Conv <kernel_shape = [3,3], pads = [1,1,1,1], strides = [2,2]> (x, w0)  b = HardSwish (a)
          c = MaxPool <kernel_shape = [2,1], strides = [2,1]> (b)
          d = Conv <kernel_shape = [3,3], pads = [1,1,1,1], strides = [2,1]> (c, w1)  e = Relu (d)
          f = AveragePool <kernel_shape = [6,2], strides = [6,2]> (e)
          g = Squeeze (f, two)  h = Transpose <perm = [0,2,1]> (g)  i = MatMul (h, w2)
          y = Softmax <axis = 2> (i) }""", w0=(8, 3, 3, 3), w1=(16, 8, 3, 3), w2=(16, 97))


def keypoint_detector() -> onnx.ModelProto:
    """Heat maps of 17 joints; the place of the largest element, and its value."""
    return _model("""keypoints (float[N,3,H,W] image) => (float[N,17,2] points, float[N,17] scores)
            <int64[3] flat = {0, 17, -1}, int64 last = {3}, int64[1] end = {-1}> {
          a = Conv <kernel_shape = [7,7], pads = [3,3,3,3], strides = [4,4]> (image, w0)  b = Relu (a)
          c = Conv <kernel_shape = [3,3], pads = [1,1,1,1], strides = [2,2]> (b, w1)  d = Relu (c)
          maps = Conv <kernel_shape = [1,1]> (d, w2)  rows = Reshape (maps, flat)
          scores = ReduceMax <keepdims = 0> (rows, end)  place = ArgMax <axis = 2, keepdims = 0> (rows)
          shape = Shape (maps)  width = Gather (shape, last)
          down = Div (place, width)  across = Mod (place, width)
          u = Unsqueeze (across, end)  v = Unsqueeze (down, end)  both = Concat <axis = 2> (u, v)
          points = Cast <to = 1> (both) }""", w0=(8, 3, 7, 7), w1=(8, 8, 3, 3), w2=(17, 8, 1, 1))


def speech_decoder() -> onnx.ModelProto:
    """Text to speech: phonemes are repeated as long as they last, up to the longest of the batch."""
    return _model("""speech (int64[batch,phonemes] input, int64[batch] input_lengths, float[3] scales) =>
        (float[batch,1,time] output)
            <int64 zero = {0}, int64 one = {1}, int64[1] ones = {1}, int64[1] twos = {2},
            float most = {6.0}> {
          table = Gather (embedding, input)  shape = Shape (input)  count = Gather (shape, one)
          steps = Range (zero, count, one)  lengths = Unsqueeze (input_lengths, ones)
          is_text = Less (steps, lengths)  mask = Cast <to = 1> (is_text)
          hidden = MatMul (table, w0)  act = Tanh (hidden)
          logd = MatMul (act, w1)  flat = Squeeze (logd, twos)  speed = Gather (scales, one)
          long = Exp (flat)  longer = Mul (long, speed)  whole = Ceil (longer)  few = Min (whole, most)
          lasting = Mul (few, mask)  positive = Abs (lasting)
          ends = CumSum (positive, one)  total = ReduceMax <keepdims = 0> (ends)  frames = Cast <to = 7> (total)
          at_least = Max (frames, one)  times = Range (zero, at_least, one)  timesf = Cast <to = 1> (times)
          column = Unsqueeze (ends, twos)  before = Less (timesf, column)  here = Cast <to = 1> (before)
          starts = Sub (ends, positive)  scolumn = Unsqueeze (starts, twos)  early = Less (timesf, scolumn)
          gone = Cast <to = 1> (early)  path = Sub (here, gone)
          turned = Transpose <perm = [0,2,1]> (act)  spread = MatMul (turned, path)
          wave = ConvTranspose <kernel_shape = [8], strides = [4], pads = [2,2]> (spread, w2)
          output = Tanh (wave) }""", embedding=(40, 16), w0=(16, 16), w1=(16, 1), w2=(16, 1, 8))


def mel_spectrogram() -> onnx.ModelProto:
    """Audio, reflected at both ends, in windows of 400 samples every 160."""
    return _model("""mel (float[batch,samples] audio) => (float[batch,40,frames] mel)
            <int64[1] one = {1}, int64[6] pads = {0, 0, 200, 0, 0, 200}, float tiny = {1e-3}> {
          a = Unsqueeze (audio, one)  b = Pad <mode = "reflect"> (a, pads)
          r = Conv <kernel_shape = [400], strides = [160]> (b, re)
          i = Conv <kernel_shape = [400], strides = [160]> (b, im)
          rr = Mul (r, r)  ii = Mul (i, i)  power = Add (rr, ii)
          c = MatMul (bank, power)  d = Add (c, tiny)  mel = Log (d) }""", re=(64, 1, 400), im=(64, 1, 400),
                  bank=np.abs(np.random.default_rng(3).standard_normal((40, 64))).astype("f"))


def object_detector() -> onnx.ModelProto:
    """Two scales that are joined, so both sides have to be multiples of 16; the boxes that remain."""
    return _model("""detector (float[batch,3,height,width] images) => (float[found,7] output)
            <float[4] twice = {1, 1, 2, 2}, int64[3] rows = {0, 6, -1}, int64[1] most = {20}, float[1] iou = {0.5},
            float[1] least = {0.1},
             int64[2] four = {4, 2}, int64[1] one = {1}> {
          a = Conv <kernel_shape = [3,3], pads = [1,1,1,1], strides = [4,4]> (images, w0)  b = Relu (a)
          c = Conv <kernel_shape = [3,3], pads = [1,1,1,1], strides = [4,4]> (b, w1)  d = Relu (c)
          e = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (d, ,
          twice)
          f = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (e, ,
          twice)
          g = Concat <axis = 1> (b, f)  h = Conv <kernel_shape = [1,1]> (g, w2)  i = Sigmoid (h)
          j = Reshape (i, rows)  boxes0, scores = Split <axis = 1> (j, four)
          boxes = Transpose <perm = [0,2,1]> (boxes0)
          kept = NonMaxSuppression <center_point_box = 1> (boxes, scores, most, iou, least)
          batch0, class0, place = Split <axis = 1, num_outputs = 3> (kept)
          where = Concat <axis = 1> (batch0, place)  chosen = GatherND (boxes, where)
          which = Concat <axis = 1> (batch0, class0, place)  score1 = GatherND (scores, which)
          score = Unsqueeze (score1, one)  b1 = Cast <to = 1> (batch0)  c1 = Cast <to = 1> (class0)
          output = Concat <axis = 1> (b1, chosen, c1, score) }""", w0=(8, 3, 3, 3), w1=(8, 8, 3, 3), w2=(6, 16, 1, 1))


def windowed_attention() -> onnx.ModelProto:
    """Super-resolution: windows of 8 by 8 pixels; both sides are multiples of 8."""
    return _model(
        """swin (float[B,3,H,W] image) => (float[B,3,H2,W2] large)
            <int64[1] eight = {8}, int64[1] zero = {0}, int64[1] channels = {16},
            int64[2] n = {64, 16},
             int64[1] all = {-1}, float scale = {0.25}> {
          a = Conv <kernel_shape = [3,3], pads = [1,1,1,1]> (image, w0)  s = Shape (a)
          b1 = Gather (s, zero)  h = Slice (s, two1, three1)  w = Slice (s, three1, four1)  h8 = Div (h, eight)
          w8 = Div (w, eight)
          parts = Concat <axis = 0> (b1, channels, h8, eight, w8, eight)  c = Reshape (a, parts)
          d = Transpose <perm = [0,2,4,3,5,1]> (c)  m = Concat <axis = 0> (all, n)  e = Reshape (d, m)
          q = MatMul (e, wq)  k = MatMul (e, wk)  v = MatMul (e, wv)  kt = Transpose <perm = [0,2,1]> (k)
          qk = MatMul (q, kt)  sc = Mul (qk, scale)  p = Softmax (sc)  o = MatMul (p, v)
          back = Concat <axis = 0> (b1, h8, w8, eight, eight, channels)  f = Reshape (o, back)
          g = Transpose <perm = [0,5,1,3,2,4]> (f)  i = Reshape (g, s)  j = Add (a, i)
          l = Conv <kernel_shape = [3,3], pads = [1,1,1,1]> (j, w1)  large = DepthToSpace <blocksize = 2> (l) }""",
        w0=(16, 3, 3, 3), w1=(12, 16, 3, 3), wq=(16, 16), wk=(16, 16), wv=(16, 16), two1=np.array([2]),
        three1=np.array([3]), four1=np.array([4]),
    )


def prompted_segmentation() -> onnx.ModelProto:
    """A mask for points with labels, in the size of the original image, which is an input of floats."""
    return _model("""segment (float[1,16,16,16] image_embeddings, float[1,num_points,2] point_coords,
        float[1,num_points] point_labels,
            float[1,1,64,64] mask_input, float[1] has_mask_input, float[2] orig_im_size) =>
            (float[1,1,h,w] masks, float[1,1] iou)
            <float minus = {-1.0}, float size = {64.0}, int64[1] one = {1}, int64[1] two = {2}, int64[3] flat = {1,
            16, 256},
             int64[4] map = {1, 1, 16, 16}, int64[2] front = {1, 1}, int64[1] end = {-1}> {
          near = Div (point_coords, size)  p = MatMul (near, w0)  s = Sin (p)
          labels = Unsqueeze (point_labels, end)  is_none = Equal (labels, minus)  none = Cast <to = 1> (is_none)
          f = Mul (none, wn)  g = Add (s, f)  token = ReduceMean <keepdims = 1> (g, one)
          small = Conv <kernel_shape = [4,4], strides = [4,4]> (mask_input, w1)  with = Mul (small, has_mask_input)
          embedded = Add (image_embeddings, with)  rows = Reshape (embedded, flat)
          hit = MatMul (token, rows)  low = Reshape (hit, map)
          sizes = Cast <to = 7> (orig_im_size)  all = Concat <axis = 0> (front, sizes)
          masks = Resize <mode = "linear"> (low, , , all)
          best = ReduceMean <keepdims = 0> (hit, two)  iou = Sigmoid (best) }""", w0=(2, 16), wn=(1, 1, 16),
                  w1=(16, 1, 4, 4))


def boxes_in_pixels() -> onnx.ModelProto:
    """A detector with queries, whose boxes are in pixels of the sizes that an input gives."""
    return _model("""queries (float[N,3,64,64] images, int64[N,2] orig_target_sizes) =>
        (int64[N,10] labels, float[N,10,4] boxes, float[N,10] scores)
            <int64[3] rows = {0, 16, -1}, int64[1] ten = {10}, int64[1] one = {1}, int64[1] end = {-1},
            int64 classes = {5},
             int64[3] four = {1, 1, 4}, int64[2] flat = {0, -1}> {
          a = Conv <kernel_shape = [8,8], strides = [8,8]> (images, w0)  b = Reshape (a, rows)
          c = Transpose <perm = [0,2,1]> (b)
          d = MatMul (c, w1)  probability = Sigmoid (d)  e = MatMul (c, w2)  relative = Sigmoid (e)
          size = Cast <to = 1> (orig_target_sizes)  both = Tile (size, twice)  s = Unsqueeze (both, one)
          scaled = Mul (relative, s)  all = Reshape (probability, flat)  scores, place = TopK (all, ten)
          labels = Mod (place, classes)  box = Div (place, classes)  column = Unsqueeze (box, end)
          index = Tile (column, four)
          boxes = GatherElements <axis = 1> (scaled, index) }""", w0=(16, 3, 8, 8), w1=(16, 5), w2=(16, 4),
                  twice=np.array([1, 2]))


def sequence_tagger() -> onnx.ModelProto:
    """Characters with lengths, read in both directions; hidden and cell states are outputs."""
    return _model("""tagger (int32[batch,time] text, int32[batch] text_lengths) =>
        (float[batch,time,15] tags, float[2,batch,8] h, float[2,batch,8] c)
            <int64[3] last = {0, 0, 16}> {
          a = Gather (embedding, text)  b = Transpose <perm = [1,0,2]> (a)
          y, h, c = LSTM <hidden_size = 8, direction = "bidirectional"> (b, w, r, , text_lengths)
          d = Transpose <perm = [2,0,1,3]> (y)  e = Reshape (d, last)  f = MatMul (e, w1)
          tags = LogSoftmax (f) }""", embedding=(60, 12), w=(2, 32, 12), r=(2, 32, 8), w1=(16, 15))


def speaker_embedding() -> onnx.ModelProto:
    """Mean and deviation over time of a network with dilations of up to 3."""
    return _model("""speaker (float[B,T,80] feats) => (float[B,32] embedding)
            <int64[1] two = {2}, float tiny = {1e-5}> {
          a = Transpose <perm = [0,2,1]> (feats)  b = Conv <kernel_shape = [5]> (a, w0)  c = Relu (b)
          d = Conv <kernel_shape = [3], dilations = [3]> (c, w1)  e = Relu (d)
          m = ReduceMean <keepdims = 1> (e, two)  f = Sub (e, m)  g = Mul (f, f)
          v = ReduceMean <keepdims = 1> (g, two)
          w = Add (v, tiny)  s = Sqrt (w)  both = Concat <axis = 1> (m, s)  flat = Flatten (both)
          embedding = MatMul (flat, w2) }""", w0=(16, 80, 5), w1=(16, 16, 3), w2=(32, 32))


def transducer_step() -> onnx.ModelProto:
    """Streaming speech recognition: a chunk of features, and caches of the past frames with their number."""
    return _model("""encoder (float[N,16,40] x, int64[N] x_lens, float[N,8,24] cached_key, int64[N] processed_lens) =>
            (float[N,16,24] encoder_out, float[N,8,24] new_cached_key, int64[N] new_processed_lens)
            <int64 zero = {0}, int64 one = {1}, int64[1] ones = {1}, int64[1] last = {-8},
            int64[1] end = {9999}, int64 keys = {24},
             int64 past = {8}, float low = {-1000.0}> {
          a = MatMul (x, w0)  k = Concat <axis = 1> (cached_key, a)  kt = Transpose <perm = [0,2,1]> (k)
          s = MatMul (a, kt)
          t = Range (zero, keys, one)  u = Sub (past, processed_lens)  first = Unsqueeze (u, ones)
          is_old = Less (t, first)
          m = Cast <to = 1> (is_old)  n = Mul (m, low)  o = Unsqueeze (n, ones)  p = Add (s, o)  q = Softmax (p)
          encoder_out = MatMul (q, k)  new_cached_key = Slice (k, last, end, ones)
          new_processed_lens = Add (processed_lens, x_lens) }""", w0=(40, 24))


def image_classifier() -> onnx.ModelProto:
    """Images as bytes, channels last, which the model prepares itself."""
    return _model("""classifier (uint8[batch,height,width,3] image) => (int64[batch] label, float[batch,10] probability)
            <float scale = {255.0}, int64[4] size = {0, 0, 32, 32}> {
          a = Cast <to = 1> (image)  b = Div (a, scale)  c = Transpose <perm = [0,3,1,2]> (b)
          s = Shape <end = 2> (c)  hw = Slice (size, two1, four1)  all = Concat <axis = 0> (s, hw)
          d = Resize <mode = "linear"> (c, , , all)  e = Conv <kernel_shape = [3,3], strides = [2,2]> (d, w0)
          f = Relu (e)
          g = GlobalAveragePool (f)  h = Flatten (g)  i = Gemm <transB = 1> (h, w1)  probability = Softmax (i)
          label = ArgMax <axis = 1, keepdims = 0> (probability) }""", w0=(16, 3, 3, 3), w1=(10, 16), two1=np.array([2]),
                  four1=np.array([4]))


def table_recogniser() -> onnx.ModelProto:
    """A cell with attention that writes the structure of a table, until its end or 20 tokens."""
    return _model("""table (float[N,3,H,W] image) => (float[N,L,12] tokens)
            <int64[3] rows = {0, 16, -1}, int64 most = {20}, bool yes = {1}, int64 zero = {0}, int64[1] ones = {1},
            int64[1] twos = {2},
             int64[1] hidden = {16}, int64 eos = {11}> {
          a = Conv <kernel_shape = [16,16], strides = [16,16]> (image, w0)  b = Reshape (a, rows)
          c = Transpose <perm = [0,2,1]> (b)
          s = Shape <end = 1> (c)  hs = Concat <axis = 0> (s, hidden)  h0 = Expand (start, hs)
          hn, steps = Loop (most, yes, h0) <body = one (int64 i, bool going, float[P,16] h) =>
          (bool on, float[P,16] h1, float[P,12] token) {
            q = MatMul (h, w1)  qu = Unsqueeze (q, twos)  e = MatMul (c, qu)  p = Softmax <axis = 1> (e)
            pt = Transpose <perm = [0,2,1]> (p)
            v = MatMul (pt, c)  w = Squeeze (v, ones)  x = Add (w, h)  y = MatMul (x, w2)  h1 = Tanh (y)
            z = MatMul (h1, w3)  token = Softmax (z)  best = ArgMax <axis = 1, keepdims = 0> (token)
            first = Gather (best, zero)  ends = Equal (first, eos)  on = Not (ends) }>
          tokens = Transpose <perm = [1,0,2]> (steps) }""", w0=(16, 3, 16, 16), w1=(16, 16), w2=(16, 16), w3=(16, 12),
                  start=(1, 16))


def recommender() -> onnx.ModelProto:
    """Ids of users and of up to 6 items with weights, and a flag; tables of different lengths."""
    return _model("""recommender (int64[batch] user, int64[batch,6] items, float[batch,6] item_mask, bool use_bias) =>
        (float[batch] score)
            <int64[1] one = {1}, int64[1] two = {2}> {
          u = Gather (users, user)  i = Gather (item_table, items)  m = Unsqueeze (item_mask, two)  w = Mul (i, m)
          bag = ReduceSum <keepdims = 0> (w, one)  p = Mul (u, bag)  raw = ReduceSum <keepdims = 0> (p, one)
          score = If (use_bias) <then_branch = t () => (float[B] t0) { b0 = Gather (bias, user)  t0 = Add (raw, b0) },
                                 else_branch = e () => (float[B] e0) { e0 = Identity (raw) }> }""", users=(7, 16),
                  item_table=(30, 16), bias=(7,))


KINDS: dict[str, Callable[[], onnx.ModelProto]] = {
    "ocr_recogniser": ocr_recogniser, "keypoint_detector": keypoint_detector, "speech_decoder": speech_decoder,
    "mel_spectrogram": mel_spectrogram, "object_detector": object_detector, "windowed_attention": windowed_attention,
    "prompted_segmentation": prompted_segmentation, "boxes_in_pixels": boxes_in_pixels,
    "sequence_tagger": sequence_tagger, "speaker_embedding": speaker_embedding, "transducer_step": transducer_step,
    "image_classifier": image_classifier, "table_recogniser": table_recogniser, "recommender": recommender,
    "voice_detector": voice_detector, "voice_detector_split": lambda: voice_detector(split=True),
}
