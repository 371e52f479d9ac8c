"""Lists the errors, warnings and notes of a conversion, without writing a file (`mo-loop check`).

    from mo_loop.look.diagnostics.examine import examine
    from mo_loop.options import ConvertOptions

    report = examine("model.onnx", ConvertOptions(input="x[1,3,224,224]"))
    for diagnostic in report.diagnostics:
        print(diagnostic.code, diagnostic.level, diagnostic.place.path, diagnostic.message)
"""
