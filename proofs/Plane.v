(** * Every two places of a plane are close at eps times their distance.

    Coordinates and eps are exact rationals. A pair of places is either checked itself ([Direct]), with a length that is
    proved to be at most eps |x_u - x_v|, or it is left out because another place lies on the segment between the two
    ([Through]): the distances to that place add up, and both are shorter. Values on a line have y = 0. *)
From Coq Require Import ZArith List Bool Reals Lia Lra Psatz Arith Wf_nat.
From Mechdesign Require Import Exponential Rows.
Import ListNotations.
Open Scope Z_scope.

Record place := Place { px : Z; py : Z; masses : row }.

Inductive reason :=
| Direct (l : Z)          (** the pair is checked at l / (length denominator) nats *)
| Through (w : nat).      (** the place of index w lies between the two *)

Definition reports_of (ps : list place) : nat :=
  match ps with [] => O | a :: _ => length (masses a) end.

Record plane := Plane {
  places : list place;
  reasons : list (list reason);   (** of each place with each later one *)
  length_denominator : Z;
  eps_num : Z; eps_den : Z;       (** eps = eps_num / eps_den, nats per unit of length *)
  scale : Z                        (** coordinates are px / scale, py / scale *)
}.

(** The squared distance of two places, times scale^2. *)
Definition square_distance (a b : place) : Z :=
  (px a - px b) * (px a - px b) + (py a - py b) * (py a - py b).

(** l / length_denominator <= eps |a - b|, by squares. *)
Definition is_length (t : plane) (a b : place) (l : Z) : bool :=
  (0 <=? l) &&
  ((l * eps_den t * scale t) * (l * eps_den t * scale t) <=?
   (eps_num t * length_denominator t) * (eps_num t * length_denominator t) * square_distance a b).

(** c lies on the segment from a to b, at neither end: no cross product, and a positive scalar product of its parts. *)
Definition is_between (a c b : place) : bool :=
  ((px c - px a) * (py b - py c) =? (py c - py a) * (px b - px c)) &&
  (0 <? (px c - px a) * (px b - px c) + (py c - py a) * (py b - py c)).

Definition pair_holds (w : Z) (k : nat) (t : plane) (a b : place) (r : reason) : bool :=
  match r with
  | Direct l => is_length t a b l && rows_close w k l (length_denominator t) (masses a) (masses b)
  | Through i => match nth_error (places t) i with Some c => is_between a c b | None => false end
  end.

Fixpoint pairs_hold (w : Z) (k : nat) (t : plane) (a : place) (bs : list place) (rs : list reason) : bool :=
  match bs, rs with
  | [], [] => true
  | b :: bs', r :: rs' => pair_holds w k t a b r && pairs_hold w k t a bs' rs'
  | _, _ => false
  end.

Fixpoint all_pairs_hold (w : Z) (k : nat) (t : plane) (ps : list place) (rs : list (list reason)) : bool :=
  match ps, rs with
  | [], [] => true
  | a :: ps', r :: rs' => pairs_hold w k t a ps' r && all_pairs_hold w k t ps' rs'
  | _, _ => false
  end.

(** The whole check: integers in, true or false out. *)
Definition check_plane (w : Z) (k : nat) (t : plane) : bool :=
  (0 <=? w) && (0 <? length_denominator t) && (0 <? eps_den t) && (0 <? scale t) && (0 <=? eps_num t) &&
  forallb (fun a => is_row (reports_of (places t)) (masses a)) (places t) &&
  all_pairs_hold w k t (places t) (reasons t).

Open Scope R_scope.

(** The distance of two places in the unit of the coordinates. *)
Definition distance (t : plane) (a b : place) : R :=
  sqrt ((IZR (px a) / IZR (scale t) - IZR (px b) / IZR (scale t)) ^ 2 +
        (IZR (py a) / IZR (scale t) - IZR (py b) / IZR (scale t)) ^ 2).

Definition eps (t : plane) : R := IZR (eps_num t) / IZR (eps_den t).

Lemma square_distance_nonnegative : forall a b, (0 <= square_distance a b)%Z.
Proof.
  intros a b. unfold square_distance.
  pose proof (Z.square_nonneg (px a - px b)). pose proof (Z.square_nonneg (py a - py b)). lia.
Qed.

Lemma distance_as_root : forall t a b, (0 < scale t)%Z ->
  distance t a b = sqrt (IZR (square_distance a b)) / IZR (scale t).
Proof.
  intros t a b U. apply IZR_lt in U.
  pose proof (IZR_le _ _ (square_distance_nonnegative a b)) as N.
  unfold distance. rewrite <- (sqrt_square (IZR (scale t))) at 5 by lra.
  rewrite <- sqrt_div by (try exact N; nra). f_equal.
  unfold square_distance. rewrite plus_IZR, !mult_IZR, !minus_IZR. field. lra.
Qed.

Lemma distance_symmetric : forall t a b, distance t a b = distance t b a.
Proof. intros. unfold distance. f_equal. ring. Qed.

Lemma distance_self : forall t a, distance t a a = 0.
Proof. intros. unfold distance. rewrite <- sqrt_0. f_equal. ring. Qed.

(** ** Lengths and distances are compared by squares. *)
Lemma rate_as_root : forall t q a b, (0 < q)%Z -> (0 < eps_den t)%Z -> (0 < scale t)%Z -> (0 <= eps_num t)%Z ->
  eps t * distance t a b =
  sqrt (IZR ((eps_num t * q) * (eps_num t * q) * square_distance a b)) / IZR (q * eps_den t * scale t).
Proof.
  intros t q a b Q E U N. rewrite distance_as_root, !mult_IZR by exact U. unfold eps.
  pose proof (IZR_le _ _ (square_distance_nonnegative a b)) as S. apply IZR_le in N. apply IZR_lt in Q, E, U.
  rewrite sqrt_mult, sqrt_square by (try exact S; nra). field. lra.
Qed.

Lemma length_as_root : forall t q l, (0 < q)%Z -> (0 < eps_den t)%Z -> (0 < scale t)%Z -> (0 <= l)%Z ->
  IZR l / IZR q = sqrt (IZR ((l * eps_den t * scale t) * (l * eps_den t * scale t))) / IZR (q * eps_den t * scale t).
Proof.
  intros t q l Q E U L. rewrite mult_IZR, sqrt_square by (apply IZR_le; nia).
  rewrite !mult_IZR. apply IZR_lt in Q, E, U. field. lra.
Qed.

Lemma roots_below : forall q x y, (0 < q)%Z -> (x <= y)%Z -> sqrt (IZR x) / IZR q <= sqrt (IZR y) / IZR q.
Proof.
  intros q x y Q H. apply IZR_lt in Q.
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Q | apply sqrt_le_1_alt, IZR_le, H].
Qed.

(** ** Through a place between two, distances add up and squares fall. *)

(** With no cross product, (|p| + |q|)^2 = |p + q|^2 for vectors p, q whose scalar product is not negative. *)
Lemma roots_add : forall p1 p2 q1 q2, p1 * q2 = p2 * q1 -> 0 <= p1 * q1 + p2 * q2 ->
  sqrt (p1 * p1 + p2 * p2) + sqrt (q1 * q1 + q2 * q2) <= sqrt ((p1 + q1) * (p1 + q1) + (p2 + q2) * (p2 + q2)).
Proof.
  intros p1 p2 q1 q2 Cross Dot.
  assert (P : 0 <= p1 * p1 + p2 * p2) by nra. assert (Q : 0 <= q1 * q1 + q2 * q2) by nra.
  assert (M : sqrt (p1 * p1 + p2 * p2) * sqrt (q1 * q1 + q2 * q2) = p1 * q1 + p2 * q2).
  { rewrite <- sqrt_mult by assumption. rewrite <- (sqrt_square (p1 * q1 + p2 * q2)) by exact Dot. f_equal.
    assert (Z : (p1 * q2 - p2 * q1) * (p1 * q2 - p2 * q1) = 0) by (rewrite Cross; ring). lra. }
  apply Rsqr_incr_0.
  - rewrite Rsqr_sqrt by nra. unfold Rsqr.
    pose proof (sqrt_sqrt _ P). pose proof (sqrt_sqrt _ Q). lra.
  - apply Rplus_le_le_0_compat; apply sqrt_pos.
  - apply sqrt_pos.
Qed.

Lemma between_adds : forall t a c b, (0 < scale t)%Z -> is_between a c b = true ->
  distance t a c + distance t c b <= distance t a b.
Proof.
  intros t a c b U H. apply andb_prop in H as [Cross Dot]. apply Z.eqb_eq in Cross. apply Z.ltb_lt in Dot.
  rewrite !distance_as_root by exact U. apply IZR_lt in U.
  apply (f_equal IZR) in Cross. apply IZR_lt in Dot.
  rewrite !mult_IZR, !minus_IZR in Cross. rewrite plus_IZR, !mult_IZR, !minus_IZR in Dot.
  unfold square_distance. rewrite !plus_IZR, !mult_IZR, !minus_IZR.
  set (p1 := IZR (px c) - IZR (px a)) in *. set (p2 := IZR (py c) - IZR (py a)) in *.
  set (q1 := IZR (px b) - IZR (px c)) in *. set (q2 := IZR (py b) - IZR (py c)) in *.
  assert (R := roots_add p1 p2 q1 q2 Cross). rewrite <- Rdiv_plus_distr.
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; exact U |].
  replace (IZR (px a) - IZR (px c)) with (- p1) by (unfold p1; ring).
  replace (IZR (py a) - IZR (py c)) with (- p2) by (unfold p2; ring).
  replace (IZR (px c) - IZR (px b)) with (- q1) by (unfold q1; ring).
  replace (IZR (py c) - IZR (py b)) with (- q2) by (unfold q2; ring).
  replace (IZR (px a) - IZR (px b)) with (- (p1 + q1)) by (unfold p1, q1; ring).
  replace (IZR (py a) - IZR (py b)) with (- (p2 + q2)) by (unfold p2, q2; ring).
  rewrite !Rmult_opp_opp. apply R. lra.
Qed.

Lemma between_shorter : forall a c b, is_between a c b = true ->
  (square_distance a c < square_distance a b)%Z /\ (square_distance c b < square_distance a b)%Z.
Proof.
  intros a c b H. apply andb_prop in H as [_ Dot]. apply Z.ltb_lt in Dot. unfold square_distance.
  set (p1 := (px c - px a)%Z) in *. set (p2 := (py c - py a)%Z) in *.
  set (q1 := (px b - px c)%Z) in *. set (q2 := (py b - py c)%Z) in *.
  replace (px a - px c)%Z with (- p1)%Z by (unfold p1; ring). replace (py a - py c)%Z with (- p2)%Z by (unfold p2; ring).
  replace (px c - px b)%Z with (- q1)%Z by (unfold q1; ring). replace (py c - py b)%Z with (- q2)%Z by (unfold q2; ring).
  replace (px a - px b)%Z with (- p1 - q1)%Z by (unfold p1, q1; ring).
  replace (py a - py b)%Z with (- p2 - q2)%Z by (unfold p2, q2; ring).
  split; nia.
Qed.

(** ** What the check says of one pair. *)

Lemma pairs_hold_at : forall w k t a bs rs, pairs_hold w k t a bs rs = true ->
  forall b, In b bs -> exists r, pair_holds w k t a b r = true.
Proof.
  induction bs as [| b' bs IH]; intros rs H b I; [destruct I |].
  destruct rs as [| r rs]; simpl in H; [discriminate |]. apply andb_prop in H as [H1 H2].
  destruct I as [<- | I]; [exists r; exact H1 | eapply IH; eassumption].
Qed.

Lemma all_pairs_hold_at : forall w k t ps rs, all_pairs_hold w k t ps rs = true ->
  forall i j a b, (i < j)%nat -> nth_error ps i = Some a -> nth_error ps j = Some b ->
  exists r, pair_holds w k t a b r = true.
Proof.
  induction ps as [| p ps IH]; intros rs H i j a b L A B; [destruct i; discriminate |].
  destruct rs as [| r rs]; simpl in H; [discriminate |]. apply andb_prop in H as [H1 H2].
  destruct j as [| j]; [lia |]. simpl in B. destruct i as [| i]; simpl in A.
  - injection A as <-. eapply pairs_hold_at; [exact H1 | eapply nth_error_In; exact B].
  - apply (IH rs H2 i j a b); [lia | exact A | exact B].
Qed.

Section Claim.
Variables (w : Z) (k : nat) (t : plane).
Hypothesis C : check_plane w k t = true.

Lemma signs : (0 <= w)%Z /\ (0 < length_denominator t)%Z /\ (0 < eps_den t)%Z /\ (0 < scale t)%Z /\ (0 <= eps_num t)%Z.
Proof.
  unfold check_plane in C. rewrite !andb_true_iff, !Z.leb_le, !Z.ltb_lt in C. tauto.
Qed.

Lemma rows_valid : forall a, In a (places t) -> is_row (reports_of (places t)) (masses a) = true.
Proof.
  unfold check_plane in C. rewrite !andb_true_iff in C. destruct C as [[_ R] _].
  rewrite forallb_forall in R. exact R.
Qed.

Definition close (a b : place) : Prop := within (eps t * distance t a b) (masses a) (masses b).

Lemma direct_close : forall a b l, In a (places t) -> In b (places t) ->
  pair_holds w k t a b (Direct l) = true -> close a b /\ close b a.
Proof.
  intros a b l A B H. destruct signs as [W [L [E [U N]]]].
  apply andb_prop in H as [S H]. apply andb_prop in S as [P S]. apply Z.leb_le in P, S.
  assert (Le : IZR l / IZR (length_denominator t) <= eps t * distance t a b).
  { rewrite (rate_as_root t (length_denominator t)), (length_as_root t) by assumption. apply roots_below; [nia | exact S]. }
  destruct (rows_close_within w k l _ _ _ _ W L P (rows_valid a A) (rows_valid b B) H) as [AB BA].
  split; eapply within_longer; eauto using rows_valid. rewrite distance_symmetric. exact Le.
Qed.

Lemma through_close : forall a c b, In b (places t) -> is_between a c b = true ->
  close a c -> close c b -> close a b.
Proof.
  intros a c b B H AC CB. destruct signs as [W [L [E [U N]]]].
  apply within_longer with (eps t * distance t a c + eps t * distance t c b) (reports_of (places t)).
  - apply rows_valid, B.
  - rewrite <- Rmult_plus_distr_l. apply Rmult_le_compat_l; [| apply between_adds; assumption].
    apply Rmult_le_pos; [apply IZR_le; exact N | left; apply Rinv_0_lt_compat, IZR_lt; exact E].
  - apply within_chain with (masses c); assumption.
Qed.

Lemma between_differs : forall i j a c b, nth_error (places t) i = Some a -> nth_error (places t) j = Some c ->
  is_between a c b = true \/ is_between b c a = true -> i <> j.
Proof.
  intros i j a c b A Cj H ->. rewrite A in Cj. injection Cj as <-.
  destruct H as [H | H]; apply andb_prop in H as [_ H]; apply Z.ltb_lt in H; lia.
Qed.

(** Both orders of a pair, by induction on the squared distance. *)
Lemma close_by_distance : forall n i j a b, (Z.to_nat (square_distance a b) < n)%nat ->
  nth_error (places t) i = Some a -> nth_error (places t) j = Some b -> i <> j -> close a b /\ close b a.
Proof.
  induction n as [| n IH]; intros i j a b Ln A B D; [lia |].
  assert (P : forall i j a b, (Z.to_nat (square_distance a b) < S n)%nat -> (i < j)%nat ->
    nth_error (places t) i = Some a -> nth_error (places t) j = Some b -> close a b /\ close b a).
  { clear i j a b Ln A B D. intros i j a b Ln L A B.
    pose proof C as H. unfold check_plane in H. apply andb_prop in H as [_ H].
    destruct (all_pairs_hold_at _ _ _ _ _ H i j a b L A B) as [[l | m] R].
    - apply (direct_close a b l); eauto using nth_error_In.
    - simpl in R. destruct (nth_error (places t) m) as [c |] eqn:M; [| discriminate].
      destruct (between_shorter a c b R) as [S1 S2].
      pose proof (square_distance_nonnegative a c). pose proof (square_distance_nonnegative c b).
      destruct (IH i m a c) as [AC CA]; [lia | exact A | exact M | eapply between_differs; eauto |].
      destruct (IH m j c b) as [CB BC]; [lia | exact M | exact B | |].
      { apply not_eq_sym. eapply between_differs; eauto. }
      assert (R' : is_between b c a = true).
      { apply andb_prop in R as [R1 R2]. apply Z.eqb_eq in R1. apply Z.ltb_lt in R2.
        apply andb_true_intro. split; [apply Z.eqb_eq | apply Z.ltb_lt]; lia. }
      split; [apply through_close with c | apply through_close with c]; eauto using nth_error_In. }
  destruct (lt_eq_lt_dec i j) as [[L | E] | L]; [eauto | contradiction |].
  apply and_comm. apply (P j i b a); auto.
  replace (square_distance b a) with (square_distance a b) by (unfold square_distance; ring). exact Ln.
Qed.

(** ** The claim: for every two places u, v and every report y, P(y | u) <= e^(eps |x_u - x_v|) P(y | v). *)
Theorem private_on_plane : forall u v a b,
  nth_error (places t) u = Some a -> nth_error (places t) v = Some b ->
  within (eps t * distance t a b) (masses a) (masses b).
Proof.
  intros u v a b A B. destruct (Nat.eq_dec u v) as [<- | D].
  - rewrite A in B. injection B as <-. rewrite distance_self, Rmult_0_r. apply within_self.
  - apply (close_by_distance (S (Z.to_nat (square_distance a b))) u v a b); auto.
Qed.
End Claim.
