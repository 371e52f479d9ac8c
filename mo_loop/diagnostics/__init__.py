"""What would stop or worsen a conversion, all at once and without writing anything (`mo-loop check`).

from mo_loop.diagnostics.examine import examine
from mo_loop.options import ConvertOptions

report = examine("model.onnx", ConvertOptions(input="x[1,3,224,224]"))
for finding in report.findings:
    print(finding.code, finding.level, finding.place.path, finding.message)
"""
