(** * Limits on what a report can tell about a person.

    N(u) persons live at secret u, and an adversary who knows this sees one report y. The share of the posterior in a set
    of places is

        sum over u in the set of N(u) P(y | u)  /  sum over all u of N(u) P(y | u).

    The check compares integers for every report and every set that is listed, or for all sets of a given number of
    places at once. Which sets lie in one disc is decided outside: the theorems speak of the listed sets. *)
From Coq Require Import ZArith List Bool Reals Lia Lra Arith.
From Mechdesign Require Import Rows.
Import ListNotations.
Open Scope Z_scope.

(** N(u) A(u, y) of every secret. *)
Fixpoint weighted_masses (persons : list Z) (rows : list row) (y : nat) : list Z :=
  match persons, rows with
  | n :: persons', a :: rows' => n * mass a y :: weighted_masses persons' rows' y
  | _, _ => []
  end.

(** The sum of the entries where the set is true. *)
Fixpoint sum_in (set : list bool) (x : list Z) : Z :=
  match set, x with
  | b :: set', v :: x' => (if b then v else 0) + sum_in set' x'
  | _, _ => 0
  end.

Definition is_limited (p q : Z) (set : list bool) (x : list Z) : bool := q * sum_in set x <=? p * sum x.

(** Every listed set, for every report below m; the limit of a set is p / q. *)
Definition check_listed (persons : list Z) (rows : list row) (m : nat) (sets : list (list bool * (Z * Z))) : bool :=
  forallb (fun s => (0 <? snd (snd s)) &&
    forallb (fun y => is_limited (fst (snd s)) (snd (snd s)) (fst s) (weighted_masses persons rows y)) (seq 0 m)) sets.

(** All sets of at most c places, by one threshold for each report: the c largest entries sum to at most
    c threshold + sum of the excesses over it. *)
Definition sum_of_largest_below (c threshold : Z) (x : list Z) : Z :=
  c * threshold + fold_right (fun v s => Z.max 0 (v - threshold) + s) 0 x.

Fixpoint check_largest (p q c : Z) (persons : list Z) (rows : list row) (y : nat) (thresholds : list Z) : bool :=
  match thresholds with
  | [] => true
  | t :: thresholds' =>
      (0 <=? t) && (q * sum_of_largest_below c t (weighted_masses persons rows y) <=? p * sum (weighted_masses persons rows y)) &&
      check_largest p q c persons rows (S y) thresholds'
  end.

Open Scope R_scope.

(** The sum of N(u) P(y | u) over the set, and over all secrets. *)
Fixpoint mass_in (set : list bool) (persons : list Z) (rows : list row) (y : nat) : R :=
  match set, persons, rows with
  | b :: set', n :: persons', a :: rows' => (if b then IZR n * probability a y else 0) + mass_in set' persons' rows' y
  | _, _, _ => 0
  end.

Definition all (persons : list Z) : list bool := map (fun _ => true) persons.

Definition posterior (set : list bool) (persons : list Z) (rows : list row) (y : nat) : R :=
  mass_in set persons rows y / mass_in (all persons) persons rows y.

Lemma mass_in_integers : forall set persons rows y,
  mass_in set persons rows y = IZR (sum_in set (weighted_masses persons rows y)) / IZR total.
Proof.
  pose proof total_positive as T. induction set as [| b set IH]; intros persons rows y; [simpl; field; lra |].
  destruct persons as [| n persons]; [simpl; field; lra |]. destruct rows as [| a rows]; [simpl; field; lra |].
  simpl. rewrite IH, plus_IZR. unfold probability.
  destruct b; [rewrite mult_IZR |]; field; lra.
Qed.

Lemma sum_in_all : forall persons rows y, sum_in (all persons) (weighted_masses persons rows y) = sum (weighted_masses persons rows y).
Proof.
  induction persons as [| n persons IH]; intros rows y; [reflexivity |].
  destruct rows as [| a rows]; [reflexivity |]. simpl. unfold all in IH. rewrite IH. reflexivity.
Qed.

(** Integers bound the posterior wherever the report is possible. *)
Lemma posterior_below : forall p q set persons rows y, (0 < q)%Z ->
  (q * sum_in set (weighted_masses persons rows y) <= p * sum (weighted_masses persons rows y))%Z ->
  0 < mass_in (all persons) persons rows y -> posterior set persons rows y <= IZR p / IZR q.
Proof.
  intros p q set persons rows y Q H M. unfold posterior.
  apply IZR_lt in Q. apply IZR_le in H. rewrite !mult_IZR in H. pose proof total_positive as T.
  rewrite !mass_in_integers, sum_in_all in *.
  set (i := IZR (sum_in set (weighted_masses persons rows y))) in *. set (s := IZR (sum (weighted_masses persons rows y))) in *.
  assert (S : 0 < s).
  { apply Rmult_lt_reg_r with (/ IZR total); [apply Rinv_0_lt_compat; exact T | rewrite Rmult_0_l; exact M]. }
  replace (i / IZR total / (s / IZR total)) with (i / s) by (field; lra).
  apply Rmult_le_reg_r with (s * IZR q); [apply Rmult_lt_0_compat; assumption |].
  replace (i / s * (s * IZR q)) with (IZR q * i) by (field; lra).
  replace (IZR p / IZR q * (s * IZR q)) with (IZR p * s) by (field; lra). exact H.
Qed.

(** ** Limits on listed sets: after every possible report, the share of the posterior is at most p / q.
    A limit on the lift, k times the share before the report, is the same check with p / q = k N(set) / N. *)
Theorem posterior_limited : forall persons rows m sets, check_listed persons rows m sets = true ->
  forall set p q, In (set, (p, q)) sets -> forall y, (y < m)%nat ->
  0 < mass_in (all persons) persons rows y -> posterior set persons rows y <= IZR p / IZR q.
Proof.
  intros persons rows m sets C set p q I y Y M. unfold check_listed in C. rewrite forallb_forall in C.
  apply C in I. simpl in I. apply andb_prop in I as [Q I]. rewrite forallb_forall in I.
  assert (S : In y (seq 0 m)) by (apply in_seq; lia).
  apply I in S. apply Z.leb_le in S. apply Z.ltb_lt in Q. apply posterior_below; assumption.
Qed.

(** The number of places of a set. *)
Fixpoint size (set : list bool) : Z :=
  match set with [] => 0 | b :: set' => (if b then 1 else 0) + size set' end%Z.

Lemma size_nonnegative : forall set, (0 <= size set)%Z.
Proof. induction set as [| b set IH]; simpl; [lia | destruct b; lia]. Qed.

Lemma excesses_nonnegative : forall t x, (0 <= fold_right (fun v s => Z.max 0 (v - t) + s) 0 x)%Z.
Proof. induction x as [| v x IH]; simpl; lia. Qed.

(** For every threshold, entries of a set exceed it by no more than all entries do. *)
Lemma sum_in_below : forall t set x, (0 <= t)%Z ->
  (sum_in set x <= size set * t + fold_right (fun v s => Z.max 0 (v - t) + s) 0 x)%Z.
Proof.
  intros t. induction set as [| b set IH]; intros x T; simpl.
  - pose proof (excesses_nonnegative t x). lia.
  - pose proof (size_nonnegative set) as N. destruct x as [| v x]; simpl.
    + destruct b; nia.
    + specialize (IH x T). destruct b; lia.
Qed.

(** ** Limits by area: after every possible report, every set of at most c places has a share of at most p / q. *)
Theorem posterior_limited_by_area : forall p q c persons rows thresholds y0,
  (0 < q)%Z -> check_largest p q c persons rows y0 thresholds = true ->
  forall y, (y0 <= y < y0 + length thresholds)%nat -> forall set, (size set <= c)%Z ->
  0 < mass_in (all persons) persons rows y -> posterior set persons rows y <= IZR p / IZR q.
Proof.
  intros p q c persons rows. induction thresholds as [| t ts IH]; simpl; intros y0 Q C y Y set S M; [lia |].
  apply andb_prop in C as [C C3]. apply andb_prop in C as [C1 C2]. apply Z.leb_le in C1, C2.
  destruct (Nat.eq_dec y y0) as [-> | D]; [| apply (IH (Datatypes.S y0)); try assumption; lia].
  apply posterior_below; [exact Q | | exact M].
  pose proof (sum_in_below t set (weighted_masses persons rows y0) C1) as B. unfold sum_of_largest_below in C2.
  apply Z.le_trans with (2 := C2). apply Zmult_le_compat_l; [| lia].
  pose proof (Zmult_le_compat_r _ _ t S C1). lia.
Qed.
