"""What the tables of docs/benchmark.md mean, in words that `benchmark_page` puts under them. They
are of the recorded run: another run asks for a look at every sentence.

Reasons that the counters show are told as such; what is only likely is called so.
"""

COPIES = """\
**What it means.** At this size the memory is the limit, and many ways reach it. The best TMA
kernel is ahead of all peers, but of the plain 16-byte kernel by 0.12 % only, less than the
quartiles of the latter span: a copy alone is no reason to use TMA.

- The search chose the smallest tiles: 512 bytes, a warp and a barrier for each. Many small blocks
  overlap one another, and the hardware gives a free multiprocessor the next one.
- Rings in a *persistent* grid lose (0.93), and with blocks of four tiles less so (0.99). Their
  share is fixed beforehand, so the likely reason is that some multiprocessors end later than
  others. A ring pays where a block has arithmetic to do while tiles come, and there is none here.
- The lesson's own tile, 64 x 64 floats, reaches 0.987 as it is written.
- `cupy.add` and the plain CuPy kernel (0.40) take one float a thread, so that few bytes are on
  their way: the likely reason. CuPy's best is a kernel over `float4`.
- Ratios over 1 are no mistake: `cudaMemcpy` is one way to copy, and not quite the fastest.
"""

THREADS = """\
**What it means.** This is what TMA is for. Bandwidth takes bytes on their way, and somebody has
to hold the place for them. Plain loads hold it in registers: 32 threads with sixteen 16-byte
loads each ask for 8 KiB, and get a third of the bandwidth. The engine writes into shared memory,
so one thread asks for 96 KiB and goes on; with one warp on a multiprocessor TMA keeps over 0.9.

- `cp.async` keeps 0.92 as well, since its bytes go to shared memory, too. What TMA saves beside
  it are the addresses: one instruction asks for a box, where `cp.async` asks for 16 bytes a
  thread.
- These kernels are persistent, so their best is 0.95 or so, for the reason told above.
- Every other warp of the multiprocessor is free for arithmetic: that is how a fast matrix product
  uses TMA, with one warp that only asks.
"""

SIZES = """\
**What it means.** At 4 MiB the start and end of a kernel weigh as much as the copy, and there the
one-tile TMA kernel is a little behind plain loads: a barrier must be set up first. Up to 16 MiB
the same data again come from L2, and there Triton and PyTorch are ahead. From 512 MiB on
`cudaMemcpy` is slower *as a node of a graph* than launched alone: the graph seems to take another
path for such copies. The goals and all other ratios here are to the launch alone, which is the
faster of the two.
"""

TRANSPOSES = """\
**What it means.** Through TMA the transpose reaches 0.96 of a copy, ahead of the padded one by
far. But *the swizzle is not why*. The profiler counts what it does: of lanes along a row, 4.8
times the fewest passes become 2.8; lanes along a diagonal have next to no conflicts (1.2), with a
swizzle or without. The bandwidth of all four is the same within half a percent, and at 4 GiB the
one with most conflicts is ahead: shared memory has time to spare while the memory is the limit. A
swizzle shows where shared memory is the limit, as in a matrix product.

The padded kernel has no conflicts to speak of, and a fifth of its issue slots in use. It loads
and stores 4 bytes a thread, so few bytes are on their way; that is the likely reason. The order
of the tiles and the promotion in L2 also differ, and were not measured apart.
"""

EDGES = """\
**What it means.** TMA and plain 16-byte loads rise and fall together, since both move the same
sectors of 32 bytes.

- Rows that are off by 16 bytes begin within a sector, and lose a tenth either way. Off by 4 bytes
  there is no map: a stride is a multiple of 16 bytes. Plain 4-byte loads do it, at 0.68.
- A box 16 bytes wide uses half of every sector that it touches.
- Boxes of 512 bytes to 1 KiB are few bytes for a block: a multiprocessor holds 32 blocks at most.
- At 2 and 4 KiB a block, *TMA loses* (0.95 and 0.92 against 1.00 and 0.99): a block sets a
  barrier up, asks, and waits, and likely there are too few blocks to hide that. From 8 KiB on it
  is level or ahead. The contender of the first table avoids it: each warp has its own tile and
  barrier.
"""

INSTRUCTIONS = """\
**What it means.** TMA does not always save instructions. The fastest contender executes three
times as many as plain 16-byte loads, because each 512 bytes cost a barrier; there are issue slots
to spare, so it is the fastest all the same. Large tiles bring the number down: a persistent ring
with the store through TMA, 4 KiB a tile, needs about as many as plain loads. What the kernels
with tensor maps at both ends do save is registers: 11 to 15, where plain loads need 18 to 20.
"""

SANITIZERS = """\
Run again over the same sources on the same kind of machine on 2026-11-30, with calls to the driver
that fail left out (`--report-api-errors no`): in the first run memcheck also counted 34 of those,
which the host makes while it encodes maps.
"""

METHOD = """\
## How

- Times come from CUDA events. At 4 GiB each launch is timed alone, and the contenders take turns,
  so that a drift of the clocks hits all alike. Quartiles stand beside every median; no sample is
  left out.
- Small sizes are replayed as one CUDA graph of many launches. *Cold*: the launches go round over
  512 MiB of input and as much output, far more than L2 holds. *Warm*: all over the same bytes.
- A point of the sweep is the best of several settings with that many threads and blocks, measured
  anew after it was chosen.
- Clocks, power limit and persistence mode were as the machine had them.
- The profiler's counters are of one launch over 256 MiB (`ncu --clock-control none`).
"""
