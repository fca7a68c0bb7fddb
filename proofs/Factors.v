(** * Rows with sums of their own.

    A large map keeps a row as factors: masses K(distance) times weight, that sum to S(u) instead of 2^62. A uniform
    integer below S(u) draws report y for exactly mass(y) integers ([Sampler] is about any sum). Along an edge the
    masses may differ by e^(p/q), and the sums by e^(r/q). *)
From Coq Require Import ZArith List Bool Reals Lia Lra.
From Mechdesign Require Import Exponential Rows.
Import ListNotations.
Open Scope Z_scope.

(** The check of an edge, in one direction. *)
Definition check_factors (w : Z) (k : nat) (p r q : Z) (a b : row) : bool :=
  (0 <=? w) && (0 <? q) && (0 <=? p) && (0 <=? r) && forallb (Z.leb 0) b && (0 <? sum a) && (0 <? sum b) &&
  entries_below (2 ^ w) (exp_lower w k p q) a b && (sum b * 2 ^ w <=? exp_lower w k r q * sum a).

Open Scope R_scope.

(** The probability of report y. *)
Definition share (a : row) (y : nat) : R := IZR (mass a y) / IZR (sum a).

(** ** Factors: P(y | u) <= e^(p/q + r/q) P(y | v) for every report y. *)
Theorem factors_within : forall w k p r q a b, check_factors w k p r q a b = true ->
  forall y, share a y <= exp (IZR p / IZR q + IZR r / IZR q) * share b y.
Proof.
  intros w k p r q a b C y. unfold check_factors in C. rewrite !andb_true_iff, forallb_forall in C.
  destruct C as [[[[[[[[W Q] P] R] N] A] B] E] S]. apply Z.leb_le in W, P, R, S. apply Z.ltb_lt in Q, A, B.
  assert (M : forall z, (0 <= mass b z)%Z).
  { intro z. unfold mass. destruct (nth_in_or_default z b 0%Z) as [I | ->]; [apply Z.leb_le, N, I | lia]. }
  pose proof (masses_below w k p q a b W Q P M E y) as X.
  pose proof (exp_lower_scaled w k r q _ _ W Q R (Z.lt_le_incl _ _ A) S) as Y. specialize (M y).
  apply IZR_le in M. apply IZR_lt in A, B. rewrite exp_plus. unfold share.
  set (e := exp (IZR p / IZR q)) in *. set (e' := exp (IZR r / IZR q)) in *.
  assert (0 < e) by apply exp_pos. apply Rmult_le_compat_r with (r := IZR (sum b)) in X; [| lra].
  apply Rmult_le_compat_l with (r := e * IZR (mass b y)) in Y; [| apply Rmult_le_pos; lra].
  apply Rmult_le_reg_r with (IZR (sum a) * IZR (sum b)); [apply Rmult_lt_0_compat; assumption |].
  replace (IZR (mass a y) / IZR (sum a) * _) with (IZR (mass a y) * IZR (sum b)) by (field; lra).
  replace (e * e' * _ * _) with (e * IZR (mass b y) * (e' * IZR (sum a))) by (field; lra). lra.
Qed.
