"""Runs an IR with variables: sequences of inferences on one infer request, with a reset before each sequence.

    python stepping.py TASK ANSWER        # pickled arguments of `stepped`, pickled outputs
"""

import pickle
import sys


def stepped(path, sequences, reshaped=False, device="CPU"):
    """The outputs of each inference of each sequence, in the order of the model. An inference is a dict of inputs.

    With `reshaped` the model gets the sizes of the first inference.
    """
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    if reshaped:
        feeds = sequences[0][0]
        model.reshape({port: list(feeds[_name(port, feeds)].shape) for port in model.inputs})
    compiled = core.compile_model(model, device, {"INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    found = []
    for sequence in sequences:
        request.reset_state()
        steps = []
        for feeds in sequence:
            request.infer({port: feeds[_name(port, feeds)] for port in compiled.inputs})
            steps.append([request.get_tensor(port).data.copy() for port in compiled.outputs])
        found.append(steps)
    return found


def _name(port, feeds):
    return next(name for name in feeds if name in port.names)


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        task = pickle.load(file)
    with open(sys.argv[2], "wb") as file:
        pickle.dump(stepped(*task), file)
