"""Damaged IR files: the reader refuses what it cannot read with a code, whatever is in them.

    ir_sources     small pairs of .xml and .bin with every layer that the writer writes, from an archive that
                   tools/record_ir_sources.py writes
    elements       damage of the elements of an .xml: ids, ports, edges, port maps, attributes, bodies
    documents      damage of an .xml as text: document types, entities, encodings, depth
    weight_files   damage of a .bin: it is shorter, missing, or no file
    ir_damaging    a seed and a number -> a damaged pair
    reading        what is done with a damaged pair

tests/fuzz/damage runs them: an execution is right if the pair is read and all that follows succeeds, or if it is
refused with a code that is not of a bug.
"""
