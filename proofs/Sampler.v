(** * The sampler draws exactly the table.

    A report is drawn with an integer x, uniform on 0 .. 2^62 - 1: the first report at which the running sum of the
    masses exceeds x. *)
From Coq Require Import ZArith List Bool Lia Arith.
From Mechdesign Require Import Rows.
Import ListNotations.
Open Scope Z_scope.

(** The report of x. *)
Fixpoint draw (a : row) (x : Z) : nat :=
  match a with
  | [] => O
  | m :: a' => if x <? m then O else S (draw a' (x - m))
  end.

(** The sum of the masses before report y. *)
Fixpoint sum_before (a : row) (y : nat) : Z :=
  match a, y with
  | m :: a', S y' => m + sum_before a' y'
  | _, _ => 0
  end.

Lemma sum_before_nonnegative : forall a y, forallb (Z.leb 0) a = true -> 0 <= sum_before a y.
Proof.
  induction a as [| m a IH]; destruct y as [| y]; simpl; intro P; try lia.
  apply andb_prop in P as [P1 P2]. apply Z.leb_le in P1. specialize (IH y P2). lia.
Qed.

(** ** The integers x that draw report y are an interval of exactly mass(y) integers. *)
Theorem drawn_by_interval : forall a y x, forallb (Z.leb 0) a = true -> (y < length a)%nat -> 0 <= x < sum a ->
  (draw a x = y <-> sum_before a y <= x < sum_before a y + mass a y).
Proof.
  unfold mass. induction a as [| m a IH]; simpl; intros y x P L X; [lia |].
  apply andb_prop in P as [P1 P2]. apply Z.leb_le in P1.
  destruct (Z.ltb_spec x m) as [H | H]; destruct y as [| y]; simpl.
  - split; intro; [lia | reflexivity].
  - pose proof (sum_before_nonnegative a y P2). split; intro Q; [discriminate | lia].
  - split; intro Q; [discriminate | lia].
  - assert (Y : (y < length a)%nat) by lia. assert (XX : 0 <= x - m < sum a) by (unfold sum in *; lia).
    specialize (IH y (x - m) P2 Y XX).
    split; intro Q; [injection Q as Q; apply IH in Q; lia | f_equal; apply IH; lia].
Qed.

(** ** The intervals of all reports end at the sum: every x draws a report of the row. *)
Theorem draws_a_report : forall a x, forallb (Z.leb 0) a = true -> 0 <= x < sum a -> (draw a x < length a)%nat.
Proof.
  induction a as [| m a IH]; simpl; intros x P X; [lia |].
  apply andb_prop in P as [P1 P2]. destruct (Z.ltb_spec x m); [lia |].
  apply -> Nat.succ_lt_mono. apply IH; [exact P2 | unfold sum in *; lia].
Qed.
