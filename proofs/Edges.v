(** * A table that is private along edges is private along every path.

    Covers maps whose levels vary, grids with eight neighbours, metrics of graphs, and values on a line: the distance
    of two secrets is the length of a shortest path of edges. *)
From Coq Require Import ZArith List Bool Reals Lia Lra Arith.
From Mechdesign Require Import Exponential Rows.
Import ListNotations.
Open Scope Z_scope.

(** An edge between two secrets; its length is num / (denominator of the table), in nats. *)
Record edge := Edge { tail : nat; head : nat; num : Z }.

Record table := Table { rows : list row; edges : list edge; denominator : Z }.

Definition row_of (t : table) (u : nat) : row := nth u (rows t) [].

Definition reports (rows : list row) : nat := length (hd [] rows).

Definition edge_holds (w : Z) (k : nat) (t : table) (e : edge) : bool :=
  (0 <=? num e) && Nat.ltb (tail e) (length (rows t)) && Nat.ltb (head e) (length (rows t)) &&
  rows_close w k (num e) (denominator t) (row_of t (tail e)) (row_of t (head e)).

(** The whole check: integers in, true or false out. *)
Definition check_edges (w : Z) (k : nat) (t : table) : bool :=
  (0 <=? w) && (0 <? denominator t) && forallb (is_row (reports (rows t))) (rows t) &&
  forallb (edge_holds w k t) (edges t).

Open Scope R_scope.

Definition length_of (t : table) (e : edge) : R := IZR (num e) / IZR (denominator t).

(** A path along edges, either way, with its length in nats. *)
Inductive path (t : table) : nat -> nat -> R -> Prop :=
| stay : forall u, path t u u 0
| forwards : forall e v l, In e (edges t) -> path t (head e) v l -> path t (tail e) v (length_of t e + l)
| backwards : forall e v l, In e (edges t) -> path t (tail e) v l -> path t (head e) v (length_of t e + l).

Lemma edge_within : forall w k t e, check_edges w k t = true -> In e (edges t) ->
  within (length_of t e) (row_of t (tail e)) (row_of t (head e)) /\
  within (length_of t e) (row_of t (head e)) (row_of t (tail e)).
Proof.
  intros w k t e C I. unfold check_edges in C.
  apply andb_prop in C as [C E]. apply andb_prop in C as [C R]. apply andb_prop in C as [W D].
  rewrite forallb_forall in E, R. apply Z.leb_le in W. apply Z.ltb_lt in D.
  apply E in I. unfold edge_holds in I.
  apply andb_prop in I as [I B]. apply andb_prop in I as [I Hh]. apply andb_prop in I as [L Ht].
  apply Z.leb_le in L. apply Nat.ltb_lt in Hh, Ht.
  apply rows_close_within with w k (reports (rows t)); try assumption; apply R, nth_In; assumption.
Qed.

(** ** The claim of a table: along every path of length l, P(y | u) <= e^l P(y | v) for every report y. *)
Theorem private_along_paths : forall w k t, check_edges w k t = true ->
  forall u v l, path t u v l -> within l (row_of t u) (row_of t v).
Proof.
  intros w k t C u v l P. induction P as [u | e v l I P IH | e v l I P IH].
  - apply within_self.
  - apply within_chain with (row_of t (head e)); [apply (edge_within w k t e C I) | exact IH].
  - apply within_chain with (row_of t (tail e)); [apply (edge_within w k t e C I) | exact IH].
Qed.

(** ** The discrete metric: where an edge of length l joins every two secrets, every two are close at l. *)
Theorem private_for_all : forall w k t, check_edges w k t = true ->
  forall l, 0 <= l ->
  (forall u v, (u < v < length (rows t))%nat -> exists e, In e (edges t) /\ tail e = u /\ head e = v /\ length_of t e <= l) ->
  forall u v, (u < length (rows t))%nat -> (v < length (rows t))%nat -> within l (row_of t u) (row_of t v).
Proof.
  intros w k t C l L A u v U V.
  pose proof C as R. unfold check_edges in R. rewrite !andb_true_iff, !forallb_forall in R. destruct R as [[_ R] _].
  assert (V' : is_row (reports (rows t)) (row_of t v) = true) by (apply R, nth_In, V).
  destruct (lt_eq_lt_dec u v) as [[H | ->] | H].
  - destruct (A u v) as [e [I [T [Hd Le]]]]; [lia |]. subst.
    apply within_longer with (length_of t e) (reports (rows t)); auto. apply (edge_within w k t e C I).
  - apply within_longer with 0 (reports (rows t)); auto. apply within_self.
  - destruct (A v u) as [e [I [T [Hd Le]]]]; [lia |]. subst.
    apply within_longer with (length_of t e) (reports (rows t)); auto. apply (edge_within w k t e C I).
Qed.
