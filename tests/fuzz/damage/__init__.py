"""Damaged models: a converter refuses what it cannot read with a code, whatever is in the file.

    sources     small models of every operator, from an archive that tools/record_damage_sources.py writes
    amounts     numbers at the limits of their types
    fields      damage of an onnx.ModelProto: one field, one node, one name
    octets      damage of bytes
    damaging    a source and a seed -> the damaged model
    execution   the conversion of damaged models in a worker process, and what it found
    running     many executions in worker processes

An execution is right if the model converts, or is refused with a code that is not of a bug. tools/fuzz_bytes.py runs
any number of them.
"""
