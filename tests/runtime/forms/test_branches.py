"""If: branches of different rank, few inputs or none, bodies in bodies."""


from tests.cases import read_cases
from tests.texts import texts

TEXTS = texts(__file__)

FLIPS = [True, False, False, True, True, False]


read_cases(globals())
