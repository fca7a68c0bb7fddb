(** * Rows of a mechanism, and when one is close to another.

    A row holds the masses of the reports of one secret: integers whose sum is [total]. *)
From Coq Require Import ZArith List Bool Reals Lia Lra Arith.
From Mechdesign Require Import Exponential.
Import ListNotations.
Open Scope Z_scope.

Definition row := list Z.

(** 2^62, the sum of the masses of every row. *)
Definition total : Z := 4611686018427387904.

Definition mass (a : row) (y : nat) : Z := nth y a 0.

Definition sum (a : row) : Z := fold_right Z.add 0 a.

(** m masses, each at least 1, whose sum is [total]. *)
Definition is_row (m : nat) (a : row) : bool :=
  forallb (Z.leb 1) a && (sum a =? total) && Nat.eqb (length a) m.

(** a(y) s <= r b(y) for every report y. *)
Fixpoint entries_below (s r : Z) (a b : row) : bool :=
  match a, b with
  | [], [] => true
  | x :: a', y :: b' => (x * s <=? r * y) && entries_below s r a' b'
  | _, _ => false
  end.

(** The check of a pair of rows both ways, at p/q nats, with w binary places and k squarings. *)
Definition rows_close (w : Z) (k : nat) (p q : Z) (a b : row) : bool :=
  let r := exp_lower w k p q in
  entries_below (2 ^ w) r a b && entries_below (2 ^ w) r b a.

Open Scope R_scope.

(** P(y | u) for the row a of the secret u. *)
Definition probability (a : row) (y : nat) : R := IZR (mass a y) / IZR total.

(** P(y | u) <= e^l P(y | v) for every report y: a is the row of u, b of v. *)
Definition within (l : R) (a b : row) : Prop := forall y, probability a y <= exp l * probability b y.

Lemma total_positive : 0 < IZR total.
Proof. apply IZR_lt. reflexivity. Qed.

Lemma mass_nonnegative : forall m a y, is_row m a = true -> (0 <= mass a y)%Z.
Proof.
  intros m a y H. unfold is_row in H. apply andb_prop in H as [H _]. apply andb_prop in H as [H _].
  rewrite forallb_forall in H. unfold mass.
  destruct (nth_in_or_default y a 0%Z) as [I | ->]; [apply H, Z.leb_le in I; lia | lia].
Qed.

Lemma probability_nonnegative : forall m a y, is_row m a = true -> 0 <= probability a y.
Proof.
  intros m a y H. apply mass_nonnegative with (y := y) in H. apply IZR_le in H.
  pose proof total_positive. apply Rmult_le_pos; [exact H | left; apply Rinv_0_lt_compat; assumption].
Qed.

(** ** The check proves closeness. *)

Lemma entries_below_mass : forall s r a b, entries_below s r a b = true ->
  forall y, (mass a y * s <= r * mass b y)%Z.
Proof.
  unfold mass. induction a as [| x a IH]; destruct b as [| z b]; simpl; intros H y; try discriminate.
  - destruct y; simpl; lia.
  - apply andb_prop in H as [H1 H2]. apply Z.leb_le in H1. destruct y; simpl; auto.
Qed.

(** Every mass of a is at most e^(p/q) times that of b. *)
Lemma masses_below : forall w k p q a b, (0 <= w)%Z -> (0 < q)%Z -> (0 <= p)%Z -> (forall y, 0 <= mass b y)%Z ->
  entries_below (2 ^ w) (exp_lower w k p q) a b = true ->
  forall y, IZR (mass a y) <= exp (IZR p / IZR q) * IZR (mass b y).
Proof.
  intros w k p q a b W Q P N H y. apply (exp_lower_scaled w k); try assumption; [apply N |].
  apply entries_below_mass, H.
Qed.

Lemma entries_below_within : forall w k p q m a b, (0 <= w)%Z -> (0 < q)%Z -> (0 <= p)%Z -> is_row m b = true ->
  entries_below (2 ^ w) (exp_lower w k p q) a b = true -> within (IZR p / IZR q) a b.
Proof.
  intros w k p q m a b Hw Hq Hp Hb H y. pose proof total_positive as T. unfold probability, Rdiv.
  rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; exact T |].
  apply masses_below with w k; try assumption. intro z. apply (mass_nonnegative _ _ z Hb).
Qed.

Theorem rows_close_within : forall w k p q m a b, (0 <= w)%Z -> (0 < q)%Z -> (0 <= p)%Z ->
  is_row m a = true -> is_row m b = true -> rows_close w k p q a b = true ->
  within (IZR p / IZR q) a b /\ within (IZR p / IZR q) b a.
Proof.
  intros w k p q m a b Hw Hq Hp Ha Hb H. apply andb_prop in H as [H1 H2].
  split; [apply entries_below_within with w k m | apply entries_below_within with w k m]; assumption.
Qed.

(** ** Closeness behaves as a distance does. *)

Lemma within_self : forall a, within 0 a a.
Proof. intros a y. rewrite exp_0. lra. Qed.

Lemma within_chain : forall l l' a b c, within l a b -> within l' b c -> within (l + l') a c.
Proof.
  intros l l' a b c H H' y. specialize (H y). specialize (H' y). rewrite exp_plus.
  pose proof (exp_pos l) as E. apply Rmult_le_compat_l with (r := exp l) in H'; [| lra]. lra.
Qed.

Lemma within_longer : forall l l' m a b, is_row m b = true -> l <= l' -> within l a b -> within l' a b.
Proof.
  intros l l' m a b Hb L H y. specialize (H y). pose proof (probability_nonnegative _ _ y Hb) as N.
  assert (E : exp l <= exp l') by (destruct L as [L | ->]; [left; apply exp_increasing; exact L | lra]).
  apply Rmult_le_compat_r with (r := probability b y) in E; [lra | exact N].
Qed.

(** ** Sums over reports. *)

Fixpoint sum_over (f : nat -> R) (m : nat) : R :=
  match m with
  | O => 0
  | S m' => sum_over f m' + f m'
  end.

Lemma sum_over_first : forall f m, sum_over f (S m) = f O + sum_over (fun y => f (S y)) m.
Proof. induction m as [| m IH]; simpl in *; [lra | rewrite IH; lra]. Qed.

Lemma sum_over_row : forall a, sum_over (probability a) (length a) = IZR (sum a) / IZR total.
Proof.
  pose proof total_positive as T. induction a as [| x a IH].
  - simpl. unfold Rdiv. ring.
  - change (length (x :: a)) with (S (length a)). rewrite sum_over_first.
    change (sum_over (fun y => probability (x :: a) (S y)) (length a)) with (sum_over (probability a) (length a)).
    rewrite IH. unfold probability, mass. simpl. rewrite plus_IZR. field. lra.
Qed.

(** The probabilities of the m reports of a row sum to 1. *)
Theorem row_is_distribution : forall m a, is_row m a = true -> sum_over (probability a) m = 1.
Proof.
  intros m a H. apply andb_prop in H as [H L]. apply andb_prop in H as [_ S].
  apply Z.eqb_eq in S. apply Nat.eqb_eq in L. rewrite <- L, sum_over_row, S.
  field. pose proof total_positive. lra.
Qed.

(** Whatever is done with a report, by chance or not, keeps the bound: g(y) is the probability of some outcome
    after the report y. With g(y) either 0 or 1 it is the bound for an event, a set of reports. *)
Theorem later_use_within : forall l a b, within l a b -> forall g, (forall y, 0 <= g y) -> forall m,
  sum_over (fun y => g y * probability a y) m <= exp l * sum_over (fun y => g y * probability b y) m.
Proof.
  intros l a b H g G m. induction m as [| m IH]; simpl; [lra |].
  pose proof (Rmult_le_compat_l (g m) _ _ (G m) (H m)). lra.
Qed.

Corollary event_within : forall l a b, within l a b -> forall (event : nat -> bool) m,
  sum_over (fun y => (if event y then 1 else 0) * probability a y) m
  <= exp l * sum_over (fun y => (if event y then 1 else 0) * probability b y) m.
Proof. intros l a b H event m. apply later_use_within; [exact H | intro y; destruct (event y); lra]. Qed.

(** ** Several reports. *)

(** The probability that independent reports, one of each row, are ys. *)
Fixpoint joint (rows : list row) (ys : list nat) : R :=
  match rows, ys with
  | a :: rows', y :: ys' => probability a y * joint rows' ys'
  | _, _ => 1
  end.

(** All rows of two secrets, or of two days, are close, each at its own length. *)
Inductive all_within (m : nat) : R -> list row -> list row -> Prop :=
| no_rows : all_within m 0 [] []
| one_more : forall l l' a b rows rows', is_row m a = true -> is_row m b = true -> within l a b ->
    all_within m l' rows rows' -> all_within m (l + l') (a :: rows) (b :: rows').

Lemma joint_nonnegative : forall m l rows rows', all_within m l rows rows' ->
  forall ys, 0 <= joint rows ys /\ 0 <= joint rows' ys.
Proof.
  induction 1 as [| l l' a b rows rows' Ha Hb W A IH]; intro ys; destruct ys as [| y ys]; simpl; try lra.
  destruct (IH ys) as [J J'].
  split; apply Rmult_le_pos; eauto using probability_nonnegative.
Qed.

(** The lengths of k reports add up: k reports of one table at distance l are close at k l. *)
Theorem reports_within : forall m l rows rows', all_within m l rows rows' ->
  forall ys, length ys = length rows -> joint rows ys <= exp l * joint rows' ys.
Proof.
  induction 1 as [| l l' a b rows rows' Ha Hb W A IH]; intros ys L.
  - simpl. rewrite exp_0. lra.
  - destruct ys as [| y ys]; [discriminate |]. injection L as L. simpl. rewrite exp_plus.
    replace (exp l * exp l' * (probability b y * joint rows' ys))
      with (exp l * probability b y * (exp l' * joint rows' ys)) by ring.
    apply Rmult_le_compat; [eauto using probability_nonnegative | | apply W | apply IH, L].
    apply (joint_nonnegative m l' rows rows' A).
Qed.
