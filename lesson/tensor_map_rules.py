"""All rules of `cuTensorMapEncodeTiled`, in the order of the driver's arguments.

Source: CUDA Driver API, Tensor Map Object Management, `cuTensorMapEncodeTiled`, and the answers of
an H200 (driver 580, CUDA 13.0) to some 7500 maps. Where the two disagree the recording wins, and
the rule's docstring says so. They are the rules of compute capability 9.0: later chips have more
types and swizzles. Two sentences of the manual are no rule at all on that driver:

* "each following dimension stride includes the previous one": strides of 0, of less than a row, and
  in any order are accepted (overlapping rows are legal);
* under 32-byte interleave "swizzle must be SWIZZLE_32B": every swizzle is accepted.

A rule yields a `BrokenRule` for each value that breaks it, in any map whatever, and never raises.
Im2col maps have rules of their own, which are not here.
"""

from __future__ import annotations

from lesson.tensor_map_box_rules import (
    box_dim_is_1_to_256,
    box_fits,
    box_row_fits_the_swizzle_span,
    box_row_is_whole_units,
    element_strides_are_1_to_8,
    nan_fill_needs_a_float_type,
    packed_box_row_is_128,
    swizzle_is_of_compute_capability_9,
)
from lesson.tensor_map_broken import Rule
from lesson.tensor_map_global_rules import (
    arguments_are_whole_numbers,
    every_dimension_has_its_entries,
    global_address_fits_57_bits,
    global_address_is_aligned,
    global_dim_is_1_to_2_to_the_32,
    global_strides_are_aligned,
    global_strides_are_below_2_to_the_40,
    interleave_needs_three_dimensions,
    packed_row_is_whole,
    rank_is_1_to_5,
    type_is_of_compute_capability_9,
)

RULES: tuple[Rule, ...] = (
    arguments_are_whole_numbers,
    type_is_of_compute_capability_9,
    rank_is_1_to_5,
    every_dimension_has_its_entries,
    global_address_fits_57_bits,
    global_address_is_aligned,
    global_dim_is_1_to_2_to_the_32,
    packed_row_is_whole,
    global_strides_are_aligned,
    global_strides_are_below_2_to_the_40,
    box_dim_is_1_to_256,
    box_row_is_whole_units,
    packed_box_row_is_128,
    box_fits,
    element_strides_are_1_to_8,
    interleave_needs_three_dimensions,
    swizzle_is_of_compute_capability_9,
    box_row_fits_the_swizzle_span,
    nan_fill_needs_a_float_type,
)
