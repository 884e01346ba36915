"""What arrays a call takes, as a table that native code checks them against: the part of the gate that reads numpy.

The code reads three object layouts that are public and have been stable for many years: `PyVarObject` (tuple), and
`PyArrayObject_fields` of numpy's `ndarraytypes.h`. `runtime/native.py` checks both layouts on known objects before any
of this is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilework.fast_dataclass import dataclass

C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400  # ndarraytypes.h, "Array flags"

_CONSTANT, _BIND, _CHECK, _ANY = 0, 1, 2, 3


@dataclass(frozen=True)
class ConstantDim:
    """The dimension has this extent."""

    extent: int


@dataclass(frozen=True)
class BoundDim:
    """The dimension is `coefficient * symbol + constant` and gives the symbol its value, stored in frame slot `slot`.

    The symbol must lie in `lower .. upper` and be a multiple of `multiple`.
    """

    slot: int
    lower: int
    upper: int
    multiple: int = 1
    coefficient: int = 1
    constant: int = 0


@dataclass(frozen=True)
class CheckedDim:
    """The dimension is `coefficient * symbol + constant`, the symbol having its value in frame slot `slot` already."""

    slot: int
    coefficient: int = 1
    constant: int = 0


@dataclass(frozen=True)
class AnyDim:
    """Any extent will do here (it is checked elsewhere)."""


DimCheck = ConstantDim | BoundDim | CheckedDim | AnyDim


@dataclass(frozen=True)
class ArrayCheck:
    """What one array must be for the gate to take it; its address goes to frame slot `slot`.

    `descriptor` is the address of the numpy dtype object (0: no check at all, for arrays we made ourselves), `flags`
    the array flags that must be set, `alignment` a power of two that divides the address.
    """

    slot: int
    descriptor: int
    dims: tuple[DimCheck, ...] = ()
    flags: int = C_CONTIGUOUS | ALIGNED
    alignment: int = 1


def bind_table(arrays: Sequence[ArrayCheck], array_type: int) -> list[int]:
    """The int64 words that the code reads: count, address of `numpy.ndarray`, then one check after another."""
    words = [len(arrays), array_type]
    for array in arrays:
        words += [array.descriptor, len(array.dims), array.flags, array.alignment - 1, array.slot]
        for check in array.dims:
            match check:
                case ConstantDim(extent):
                    words += [_CONSTANT, 0, 0, 0, 1, 1, extent]
                case BoundDim(slot, lower, upper, multiple, coefficient, constant):
                    words += [_BIND, slot, lower, upper, multiple, coefficient, constant]
                case CheckedDim(slot, coefficient, constant):
                    words += [_CHECK, slot, 0, 0, 1, coefficient, constant]
                case AnyDim():
                    words += [_ANY, 0, 0, 0, 1, 1, 0]
    return words


# Word offsets of a check: 0 descriptor, 8 rank, 16 flags, 24 alignment mask, 32 slot; then 56 bytes a dimension:
# 0 kind, 8 slot, 16 lower, 24 upper, 32 multiple, 40 coefficient, 48 constant.
# Byte offsets in an array: 8 type, 16 data, 24 rank (int32), 32 extents, 56 descriptor, 64 flags (int32).
CHECK_TEXT = """
define internal i64 @tilework_gate_check(ptr %table, ptr %frame, ptr %arrays) #0 {
entry:
  %wanted = load i64, ptr %table
  %given_at = getelementptr i8, ptr %arrays, i64 16
  %given = load i64, ptr %given_at
  %array_type_at = getelementptr i8, ptr %table, i64 8
  %array_type = load ptr, ptr %array_type_at
  %items = getelementptr i8, ptr %arrays, i64 24
  %checks = getelementptr i8, ptr %table, i64 16
  %matching = icmp eq i64 %wanted, %given
  br i1 %matching, label %next, label %answer
next:
  %index = phi i64 [ 0, %entry ], [ %index1, %store ]
  %check = phi ptr [ %checks, %entry ], [ %dim_check, %store ]
  %index1 = add i64 %index, 1
  %more = icmp slt i64 %index, %wanted
  br i1 %more, label %array, label %answer
array:
  %item_at = getelementptr ptr, ptr %items, i64 %index
  %item = load ptr, ptr %item_at
  %type_at = getelementptr i8, ptr %item, i64 8
  %type = load ptr, ptr %type_at
  %is_array = icmp eq ptr %type, %array_type
  br i1 %is_array, label %read, label %answer
read:
  %data_at = getelementptr i8, ptr %item, i64 16
  %data = load i64, ptr %data_at
  %descriptor = load i64, ptr %check
  %wanted_rank_at = getelementptr i8, ptr %check, i64 8
  %wanted_rank = load i64, ptr %wanted_rank_at
  %first_dim_check = getelementptr i8, ptr %check, i64 40
  %unchecked = icmp eq i64 %descriptor, 0
  br i1 %unchecked, label %store, label %examine
examine:
  %descriptor_at = getelementptr i8, ptr %item, i64 56
  %has_descriptor = load i64, ptr %descriptor_at
  %rank_at = getelementptr i8, ptr %item, i64 24
  %rank32 = load i32, ptr %rank_at
  %rank = zext i32 %rank32 to i64
  %flags_at = getelementptr i8, ptr %item, i64 64
  %flags32 = load i32, ptr %flags_at
  %flags = zext i32 %flags32 to i64
  %wanted_flags_at = getelementptr i8, ptr %check, i64 16
  %wanted_flags = load i64, ptr %wanted_flags_at
  %mask_at = getelementptr i8, ptr %check, i64 24
  %mask = load i64, ptr %mask_at
  %same_descriptor = icmp eq i64 %has_descriptor, %descriptor
  %same_rank = icmp eq i64 %rank, %wanted_rank
  %set_flags = and i64 %flags, %wanted_flags
  %has_flags = icmp eq i64 %set_flags, %wanted_flags
  %low = and i64 %data, %mask
  %is_aligned = icmp eq i64 %low, 0
  %fits1 = and i1 %same_descriptor, %same_rank
  %fits2 = and i1 %has_flags, %is_aligned
  %fits = and i1 %fits1, %fits2
  br i1 %fits, label %dims, label %answer
dims:
  %extents_at = getelementptr i8, ptr %item, i64 32
  %extents = load ptr, ptr %extents_at
  br label %next_dim
next_dim:
  %axis = phi i64 [ 0, %dims ], [ %axis1, %dim_fits ]
  %this_dim_check = phi ptr [ %first_dim_check, %dims ], [ %next_dim_check, %dim_fits ]
  %more_dims = icmp slt i64 %axis, %rank
  br i1 %more_dims, label %dim, label %store
dim:
  %extent_at = getelementptr i64, ptr %extents, i64 %axis
  %extent = load i64, ptr %extent_at
  %kind = load i64, ptr %this_dim_check
  %slot_at = getelementptr i8, ptr %this_dim_check, i64 8
  %slot = load i64, ptr %slot_at
  %symbol_at = getelementptr i64, ptr %frame, i64 %slot
  %coefficient_at = getelementptr i8, ptr %this_dim_check, i64 40
  %coefficient = load i64, ptr %coefficient_at
  %constant_at = getelementptr i8, ptr %this_dim_check, i64 48
  %constant = load i64, ptr %constant_at
  %rest = sub i64 %extent, %constant
  switch i64 %kind, label %dim_fits [ i64 0, label %constant_dim i64 1, label %bound_dim i64 2, label %checked_dim ]
constant_dim:
  %equal = icmp eq i64 %rest, 0
  br i1 %equal, label %dim_fits, label %answer
checked_dim:
  %symbol = load i64, ptr %symbol_at
  %scaled = mul i64 %symbol, %coefficient
  %agrees = icmp eq i64 %rest, %scaled
  br i1 %agrees, label %dim_fits, label %answer
bound_dim:
  %lower_at = getelementptr i8, ptr %this_dim_check, i64 16
  %lower = load i64, ptr %lower_at
  %upper_at = getelementptr i8, ptr %this_dim_check, i64 24
  %upper = load i64, ptr %upper_at
  %plain = icmp eq i64 %coefficient, 1
  br i1 %plain, label %bounds, label %divide
divide:
  %quotient = sdiv i64 %rest, %coefficient
  %product = mul i64 %quotient, %coefficient
  %exact = icmp eq i64 %product, %rest
  br i1 %exact, label %bounds, label %answer
bounds:
  %value = phi i64 [ %rest, %bound_dim ], [ %quotient, %divide ]
  %above = icmp sge i64 %value, %lower
  %below = icmp sle i64 %value, %upper
  %inside = and i1 %above, %below
  br i1 %inside, label %step, label %answer
step:
  %multiple_at = getelementptr i8, ptr %this_dim_check, i64 32
  %multiple = load i64, ptr %multiple_at
  %free = icmp eq i64 %multiple, 1
  br i1 %free, label %keep, label %remainder
remainder:
  %over = srem i64 %value, %multiple
  %divides = icmp eq i64 %over, 0
  br i1 %divides, label %keep, label %answer
keep:
  store i64 %value, ptr %symbol_at
  br label %dim_fits
dim_fits:
  %axis1 = add i64 %axis, 1
  %next_dim_check = getelementptr i8, ptr %this_dim_check, i64 56
  br label %next_dim
store:
  %dim_check = phi ptr [ %first_dim_check, %read ], [ %this_dim_check, %next_dim ]
  %array_slot_at = getelementptr i8, ptr %check, i64 32
  %array_slot = load i64, ptr %array_slot_at
  %address_at = getelementptr i64, ptr %frame, i64 %array_slot
  store i64 %data, ptr %address_at
  br label %next
answer:
  %code = phi i64 [ -1, %entry ], [ 0, %next ], [ %index1, %array ], [ %index1, %examine ], [ %index1, %constant_dim ],
    [ %index1, %checked_dim ], [ %index1, %divide ], [ %index1, %bounds ], [ %index1, %remainder ]
  ret i64 %code
}
"""
"""LLVM text of `i64 tilework_gate_check(ptr table, ptr frame, ptr arrays)`, which answers as the builtin `bind`."""
