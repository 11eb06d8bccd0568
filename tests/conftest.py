"""What holds for every test."""

from __future__ import annotations

import signal

# Started with nohup or in the background, this process ignores signals, and so would each program
# that a test starts and interrupts.
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)
