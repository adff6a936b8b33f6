"""How fast the copies are: kernels to measure, their peers, and what an H200 said of them.

`variants` says what is launched and with which arguments, on a GPU or in the emulator; `contenders`
names the ones that are compared; `device` launches them; `measure` times them beside the `peers`;
`evidence` reads and writes what was measured, and `report` tells it. `python -m lesson bench`.
"""
