(** * The bound over mechanisms that are private by distance on a plane.

    [Bound] speaks of mechanisms that are private along the edges of its certificate. Here every edge is at least as
    long as eps times the distance of its ends, so that a mechanism private by distance is private along the edges. *)
From Coq Require Import ZArith List Bool Reals Lia Lra.
From Mechdesign Require Import Exponential Edges Plane Bound.
Import ListNotations.
Open Scope Z_scope.

(** num / q >= eps |x_tail - x_head|, by squares. *)
Definition is_long_enough (t : plane) (q : Z) (e : edge) : bool :=
  match nth_error (places t) (tail e), nth_error (places t) (head e) with
  | Some a, Some b =>
      (0 <=? num e) &&
      ((eps_num t * q) * (eps_num t * q) * square_distance a b <=?
       (num e * eps_den t * scale t) * (num e * eps_den t * scale t))
  | _, _ => false
  end.

(** The whole check, beside [check_bound]. *)
Definition check_lengths (t : plane) (b : certificate) : bool :=
  (0 <? nats_denominator b) && (0 <? eps_den t) && (0 <? scale t) && (0 <=? eps_num t) &&
  forallb (is_long_enough t (nats_denominator b)) (graph b).

Open Scope R_scope.

(** A mechanism of real probabilities that is private by distance at every pair of places. *)
Record plane_mechanism (t : plane) (b : certificate) (P : nat -> nat -> R) : Prop := PlaneMechanism {
  plane_nonnegative : forall u y, 0 <= P u y;
  plane_sums : forall u, (u < length (multipliers b))%nat -> row_sum (length (columns b)) P u 0 = 1;
  plane_private : forall u v a c y, nth_error (places t) u = Some a -> nth_error (places t) v = Some c ->
    P u y <= exp (eps t * distance t a c) * P v y
}.

Lemma private_along_edges : forall t b P, check_lengths t b = true -> plane_mechanism t b P -> mechanism b P.
Proof.
  intros t b P C [N S PR]. unfold check_lengths in C. rewrite !andb_true_iff in C.
  destruct C as [[[[Q E] U] NN] F]. apply Z.ltb_lt in Q, E, U. apply Z.leb_le in NN. rewrite forallb_forall in F.
  split; [exact N | exact S |]. intros y e I. apply F in I. unfold is_long_enough in I.
  destruct (nth_error (places t) (tail e)) as [a |] eqn:A; [| discriminate].
  destruct (nth_error (places t) (head e)) as [c |] eqn:B; [| discriminate].
  apply andb_prop in I as [L I]. apply Z.leb_le in L, I.
  assert (D : eps t * distance t a c <= IZR (num e) / IZR (nats_denominator b)).
  { rewrite (rate_as_root t (nats_denominator b)), (length_as_root t) by assumption. apply roots_below; [nia | exact I]. }
  assert (X : exp (eps t * distance t a c) <= exp (IZR (num e) / IZR (nats_denominator b))).
  { destruct D as [D | ->]; [left; apply exp_increasing; exact D | lra]. }
  split.
  - eapply Rle_trans; [apply (PR (tail e) (head e) a c); assumption | apply Rmult_le_compat_r; auto].
  - eapply Rle_trans; [apply (PR (head e) (tail e) c a); assumption |].
    rewrite distance_symmetric. apply Rmult_le_compat_r; auto.
Qed.

(** No mechanism that is private by distance has less expected loss than the bound. *)
Theorem no_mechanism_on_plane_below : forall w k t b, check_bound w k b = true -> check_lengths t b = true ->
  weights b = [1%Z] -> forall P, plane_mechanism t b P ->
  IZR (fold_right Z.add 0%Z (multipliers b)) <= loss 0 (columns b) P 0.
Proof.
  intros w k t b C L W P M. apply no_mechanism_below with w k; [exact C | exact W |].
  apply private_along_edges with t; assumption.
Qed.
