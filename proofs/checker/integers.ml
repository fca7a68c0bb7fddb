(* Integers of any size, with the names and the rounding that Coq's integers have. *)
include Z

let double x = shift_left x 1
let double_plus_one x = succ (shift_left x 1)

(* Coq's division by 0 is 0; by other numbers it rounds down, as fdiv does. *)
let floor_div a b = if sign b = 0 then zero else fdiv a b

(* Coq's power with a negative exponent is 0. *)
let power a b = if sign b < 0 then zero else pow a (to_int b)

(* Coq's shift to the right by a negative number is one to the left. *)
let floor_shift a b = if sign b < 0 then shift_left a (to_int (neg b)) else shift_right a (to_int b)

let match_positive odd even one p =
  if leq p Z.one then one () else if is_even p then even (shift_right p 1) else odd (shift_right p 1)

let match_integer zero positive negative z =
  let s = sign z in
  if s = 0 then zero () else if s > 0 then positive z else negative (neg z)
