"""As kept_worker, for batches: a process with too little memory for a conversion does not start."""

from mo_loop.batching import job as job
from tests.running.kept_worker import run as run
