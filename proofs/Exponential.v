(** * A lower bound of the exponential in integers.

    [exp_lower w k p q] is an integer with  exp_lower / 2^w <= e^(p/q).
    It takes 1 + x <= e^x at x = p / (q 2^k) and squares the result k times; every step rounds down. *)
From Coq Require Import ZArith Reals Lia Lra.

Open Scope Z_scope.

(** Square k times at w binary places, rounding down each time. *)
Fixpoint square (k : nat) (w v : Z) : Z :=
  match k with
  | O => v
  | S k' => square k' w (v * v / 2 ^ w)
  end.

(** The integer part of (1 + p / (q 2^k)) 2^w. *)
Definition one_plus (w : Z) (k : nat) (p q : Z) : Z := 2 ^ w + (p * 2 ^ w) / (q * 2 ^ Z.of_nat k).

Definition exp_lower (w : Z) (k : nat) (p q : Z) : Z := square k w (one_plus w k p q).

Lemma power_positive : forall w, 0 <= w -> 0 < 2 ^ w.
Proof. intros; apply Z.pow_pos_nonneg; lia. Qed.

Lemma one_plus_nonnegative : forall w k p q, 0 <= w -> 0 < q -> 0 <= p -> 0 <= one_plus w k p q.
Proof.
  intros w k p q Hw Hq Hp. unfold one_plus.
  pose proof (power_positive w Hw). pose proof (power_positive (Z.of_nat k) (Nat2Z.is_nonneg k)).
  assert (0 <= p * 2 ^ w / (q * 2 ^ Z.of_nat k)) by (apply Z.div_pos; nia). lia.
Qed.

Open Scope R_scope.

Lemma power_positive_real : forall w, (0 <= w)%Z -> 0 < IZR (2 ^ w).
Proof. intros; apply IZR_lt, power_positive; assumption. Qed.

Lemma quotient_below : forall a b, (0 < b)%Z -> IZR (a / b) * IZR b <= IZR a.
Proof.
  intros a b Hb. rewrite <- mult_IZR. apply IZR_le.
  rewrite Z.mul_comm. apply Z.mul_div_le. lia.
Qed.

Lemma one_plus_below_exp : forall x, 1 + x <= exp x.
Proof.
  intro x. destruct (Req_dec x 0) as [-> | H]; [rewrite exp_0; lra | left; apply exp_ineq1, H].
Qed.

(** One floored square of a lower bound is a lower bound of the square. *)
Lemma square_step : forall w v x, (0 <= w)%Z -> (0 <= v)%Z ->
  IZR v / IZR (2 ^ w) <= exp x -> IZR (v * v / 2 ^ w) / IZR (2 ^ w) <= exp (2 * x).
Proof.
  intros w v x Hw Hv Hx.
  pose proof (power_positive_real w Hw) as D.
  pose proof (quotient_below (v * v) (2 ^ w) (power_positive w Hw)) as F. rewrite mult_IZR in F.
  apply IZR_le in Hv. set (d := IZR (2 ^ w)) in *.
  replace (2 * x) with (x + x) by ring. rewrite exp_plus.
  apply Rle_trans with (IZR v / d * (IZR v / d)).
  - apply Rmult_le_reg_r with (d * d); [nra |].
    replace (IZR (v * v / 2 ^ w) / d * (d * d)) with (IZR (v * v / 2 ^ w) * d) by (field; lra).
    replace (IZR v / d * (IZR v / d) * (d * d)) with (IZR v * IZR v) by (field; lra).
    exact F.
  - assert (0 <= IZR v / d) by (apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra]).
    apply Rmult_le_compat; assumption.
Qed.

Lemma square_below : forall k w v x, (0 <= w)%Z -> (0 <= v)%Z ->
  IZR v / IZR (2 ^ w) <= exp x -> IZR (square k w v) / IZR (2 ^ w) <= exp (x * 2 ^ k).
Proof.
  induction k as [| k IH]; simpl; intros w v x Hw Hv Hx.
  - rewrite Rmult_1_r. exact Hx.
  - replace (x * (2 * 2 ^ k)) with (2 * x * 2 ^ k) by ring.
    apply IH; [exact Hw | apply Z.div_pos; [nia | apply power_positive; exact Hw] |].
    apply square_step; assumption.
Qed.

Lemma one_plus_correct : forall w k p q, (0 <= w)%Z -> (0 < q)%Z ->
  IZR (one_plus w k p q) / IZR (2 ^ w) <= 1 + IZR p / (IZR q * 2 ^ k).
Proof.
  intros w k p q Hw Hq.
  pose proof (power_positive_real w Hw) as D.
  assert (T : 0 < 2 ^ k) by (apply pow_lt; lra).
  assert (Q : 0 < IZR q) by (apply IZR_lt; exact Hq).
  assert (F : IZR (p * 2 ^ w / (q * 2 ^ Z.of_nat k)) * (IZR q * 2 ^ k) <= IZR p * IZR (2 ^ w)).
  { replace (2 ^ k) with (IZR (2 ^ Z.of_nat k)) by (rewrite <- pow_IZR; reflexivity).
    rewrite <- !mult_IZR, mult_IZR. apply quotient_below.
    pose proof (power_positive (Z.of_nat k) (Nat2Z.is_nonneg k)). nia. }
  unfold one_plus. rewrite plus_IZR. set (d := IZR (2 ^ w)) in *.
  apply Rmult_le_reg_r with (d * (IZR q * 2 ^ k)); [repeat apply Rmult_lt_0_compat; assumption |].
  set (f := IZR (p * 2 ^ w / (q * 2 ^ Z.of_nat k))) in *.
  replace ((d + f) / d * (d * (IZR q * 2 ^ k))) with (d * (IZR q * 2 ^ k) + f * (IZR q * 2 ^ k)) by (field; lra).
  replace ((1 + IZR p / (IZR q * 2 ^ k)) * (d * (IZR q * 2 ^ k)))
    with (d * (IZR q * 2 ^ k) + IZR p * d) by (field; split; lra).
  lra.
Qed.

(** The bound holds for every rational p/q, a negative one too, as long as the first step is not negative. *)
Theorem exp_lower_correct : forall w k p q, (0 <= w)%Z -> (0 < q)%Z -> (0 <= one_plus w k p q)%Z ->
  IZR (exp_lower w k p q) / IZR (2 ^ w) <= exp (IZR p / IZR q).
Proof.
  intros w k p q Hw Hq Hs. unfold exp_lower.
  assert (T : 0 < 2 ^ k) by (apply pow_lt; lra).
  assert (Q : 0 < IZR q) by (apply IZR_lt; exact Hq).
  replace (IZR p / IZR q) with (IZR p / (IZR q * 2 ^ k) * 2 ^ k) by (field; split; lra).
  apply square_below; [exact Hw | exact Hs |].
  apply Rle_trans with (1 + IZR p / (IZR q * 2 ^ k)).
  - apply one_plus_correct; assumption.
  - apply one_plus_below_exp.
Qed.

(** The same without quotients: exp_lower y <= 2^w e^(p/q) y for y >= 0. *)
Lemma exp_lower_times : forall w k p q y, (0 <= w)%Z -> (0 < q)%Z -> (0 <= one_plus w k p q)%Z -> 0 <= y ->
  IZR (exp_lower w k p q) * y <= IZR (2 ^ w) * (exp (IZR p / IZR q) * y).
Proof.
  intros w k p q y W Q O Y. pose proof (exp_lower_correct w k p q W Q O) as X.
  pose proof (power_positive_real w W) as D. set (r := IZR (exp_lower w k p q)) in *. set (d := IZR (2 ^ w)) in *.
  apply Rmult_le_compat_r with (r := d * y) in X; [| apply Rmult_le_pos; lra].
  replace (r / d * (d * y)) with (r * y) in X by (field; lra). lra.
Qed.

(** x 2^w <= exp_lower y proves x <= e^(p/q) y. *)
Lemma exp_lower_scaled : forall w k p q x y, (0 <= w)%Z -> (0 < q)%Z -> (0 <= p)%Z -> (0 <= y)%Z ->
  (x * 2 ^ w <= exp_lower w k p q * y)%Z -> IZR x <= exp (IZR p / IZR q) * IZR y.
Proof.
  intros w k p q x y W Q P Y H. apply IZR_le in Y, H. rewrite !mult_IZR in H.
  pose proof (exp_lower_times w k p q _ W Q (one_plus_nonnegative w k p q W Q P) Y) as X.
  apply Rmult_le_reg_l with (IZR (2 ^ w)); [apply power_positive_real, W | lra].
Qed.
