(** * The checks as OCaml programs, with the integers of Zarith. *)
From Coq Require Import ZArith List Extraction ExtrOcamlBasic ExtrOcamlNatInt.
From Mechdesign Require Import Rows Edges Plane Positions Posterior Bound PlaneBound.

(* Z becomes Zarith's integer. Numbers are built by doubling, and taken apart by sign and by the last bit. *)
Extract Inductive positive => "Integers.t"
  [ "Integers.double_plus_one" "Integers.double" "Integers.one" ] "Integers.match_positive".
Extract Inductive Z => "Integers.t" [ "Integers.zero" "" "Integers.neg" ] "Integers.match_integer".
Extract Constant Z.add => "Integers.add".
Extract Constant Z.sub => "Integers.sub".
Extract Constant Z.opp => "Integers.neg".
Extract Constant Z.mul => "Integers.mul".
Extract Constant Z.max => "Integers.max".
Extract Constant Z.div => "Integers.floor_div".
Extract Constant Z.pow => "Integers.power".
Extract Constant Z.shiftr => "Integers.floor_shift".
Extract Constant Z.leb => "Integers.leq".
Extract Constant Z.ltb => "Integers.lt".
Extract Constant Z.eqb => "Integers.equal".
Extract Constant Z.of_nat => "Integers.of_int".
Extract Constant Pos.succ => "Integers.succ".

Extraction "checker/checks.ml"
  is_row check_edges check_plane check_positions check_listed check_largest check_bound check_lengths.
