(** * Any two positions of an area are close at the integral of the level between them.

    The area consists of square cells. A position in a cell, with s, t in [0, 1] along its sides, draws a report with

        P(y | position) = sum over i, j in {0, 1, 2} of w_i(s) w_j(t) p_ij / 2^62,

    a quadratic spline: p_ij are the masses of y in the rows of the 3 x 3 cells around. The check compares integers, the
    Bernstein coefficients of the spline and of its gradient: on the cell at its smallest level, or on its four quarters
    at the level that is bilinear between their corners. z / one is a level, in nats per side of a cell. *)
From Coq Require Import ZArith List Bool Reals Lia Lra Psatz Arith.
From Mechdesign Require Import Exponential Rows.
Import ListNotations.
Open Scope Z_scope.

(** Nine masses of one report: entry 3 i + j is i steps along the first axis and j along the second. *)
Definition patch := list Z.
Definition entry (p : patch) (i j : nat) : Z := nth (3 * i + j) p 0.

(** Twice the Bernstein coefficients, along one axis, of the spline of (l, m, h) and of its derivative. *)
Definition value (a : nat) (l m h : Z) : Z := match a with O => l + m | 1%nat => 2 * m | _ => m + h end.
Definition slope (a : nat) (l m h : Z) : Z := match a with O => 2 * (m - l) | 1%nat => h - l | _ => 2 * (h - m) end.

(** Four times the coefficients a, b of the spline and of its derivatives along both axes. *)
Definition along_x (f : nat -> Z -> Z -> Z -> Z) (a : nat) (p : patch) (j : nat) : Z := 
  f a (entry p 0 j) (entry p 1 j) (entry p 2 j).
Definition along_y (f : nat -> Z -> Z -> Z -> Z) (b : nat) (r : nat -> Z) : Z := f b (r 0%nat) (r 1%nat) (r 2%nat).
Definition coefficient (p : patch) (a b : nat) : Z := along_y value b (along_x value a p).
Definition slope_x (p : patch) (a b : nat) : Z := along_y value b (along_x slope a p).
Definition slope_y (p : patch) (a b : nat) : Z := along_y slope b (along_x value a p).

(** |(slope_x, slope_y)| <= z / one coefficient, by squares. *)
Definition is_gentle_at (one z : Z) (p : patch) (a b : nat) : bool :=
  let v := coefficient p a b in let x := slope_x p a b in let y := slope_y p a b in
  (0 <=? v) && ((x * x + y * y) * (one * one) <=? (z * v) * (z * v)).

Definition is_gentle (one z : Z) (p : patch) : bool :=
  forallb (fun a => forallb (is_gentle_at one z p a) (seq 0 3)) (seq 0 3).

(** Four times the masses of the lower or upper half of an interval, by Chaikin's rule. *)
Definition halve (upper : bool) (a : nat) (l m h : Z) : Z :=
  match upper, a with
  | false, O => 3 * l + m | false, 1%nat => l + 3 * m | false, _ => 3 * m + h
  | true, O => l + 3 * m | true, 1%nat => 3 * m + h | true, _ => m + 3 * h
  end.

(** Sixteen times the masses of a quarter of the cell. *)
Definition quarter (ux uy : bool) (p : patch) : patch :=
  flat_map (fun i => map (fun j => along_y (halve uy) j (along_x (halve ux) i p)) [0; 1; 2]%nat) [0; 1; 2]%nat.

(** Sums with the weights 1, 2, 1 of a quadratic Bernstein basis, raised to degree 3 by the factor (1 - s) + s along both
    axes, and multiplied by a level at four corners. *)
Definition weighted (a : nat) : Z := match a with 1%nat => 2 | O | 2%nat => 1 | _ => 0 end.
Definition moved (i a : nat) (f : nat -> Z) : Z := match i, a with O, _ => weighted a * f a | _, O => 0 | _, S a' => weighted a' * f a' end.
Definition raised (f z : nat -> nat -> Z) (a b : nat) : Z :=
  let g i j := moved i a (fun a' => moved j b (f a')) * z i j in g 0%nat 0%nat + g 0%nat 1%nat + g 1%nat 0%nat + g 1%nat 1%nat.
Definition everywhere (i j : nat) : Z := 1.

(** The levels at the corners of a quarter, among the sixteen of its cell. *)
Definition corners (zs : list Z) (ux uy : bool) (i j : nat) : Z :=
  nth ((if ux then 8 else 0) + (if uy then 4 else 0) + (2 * i + j)) zs 0.

(** |(slope_x, slope_y)| <= level value at the coefficients of degree 3. *)
Definition is_gentle_at_3 (one : Z) (z : nat -> nat -> Z) (p : patch) (a b : nat) : bool :=
  let v := raised (coefficient p) z a b in
  let x := raised (slope_x p) everywhere a b in let y := raised (slope_y p) everywhere a b in
  (0 <=? v) && ((x * x + y * y) * (one * one) <=? v * v).

Definition is_gentle_3 (one : Z) (z : nat -> nat -> Z) (p : patch) : bool :=
  forallb (fun a => forallb (is_gentle_at_3 one z p a) (seq 0 4)) (seq 0 4).

Definition smallest (zs : list Z) : Z := fold_right Z.min (hd 0 zs) zs.

(** A quarter is half as wide, so that its level is z / (2 one). *)
Definition patch_holds (one : Z) (zs : list Z) (p : patch) : bool :=
  is_gentle one (smallest zs) p ||
  forallb (fun ux => forallb (fun uy => is_gentle_3 (2 * one) (corners zs ux uy) (quarter ux uy p)) [false; true]) [false; true].

(** A cell: the rows of the 3 x 3 cells around it, as indices, and the levels at the corners of its four quarters. *)
Record cell := Cell { around : list nat; levels : list Z }.

Record area := Area { area_rows : list row; cells : list cell; one : Z }.

Definition rows_around (t : area) (c : cell) : list row := map (fun u => nth u (area_rows t) []) (around c).

(** The first m reports of nine rows, one after the other. *)
Fixpoint reports_hold (one : Z) (zs : list Z) (m : nat) (nine : list row) : bool :=
  match m with
  | O => true
  | S m' => patch_holds one zs (map (hd 0) nine) && reports_hold one zs m' (map (@tl Z) nine)
  end.

Definition reports_of (t : area) : nat := length (hd [] (area_rows t)).

Definition cell_holds (t : area) (c : cell) : bool :=
  forallb (Z.leb 0) (levels c) && Nat.eqb (length (levels c)) 16 && Nat.eqb (length (around c)) 9 &&
  reports_hold (one t) (levels c) (reports_of t) (rows_around t c).

(** The whole check: integers in, true or false out. *)
Definition check_positions (t : area) : bool :=
  (0 <? one t) && forallb (is_row (reports_of t)) (area_rows t) && forallb (cell_holds t) (cells t).

Open Scope R_scope.

(** The weights of the spline along an axis, its Bernstein basis, and sums over 3 and 3 x 3. *)
Definition w (i : nat) (s : R) : R :=
  match i with O => (1 - s) * (1 - s) / 2 | 1%nat => (1 + 2 * s - 2 * (s * s)) / 2 | _ => s * s / 2 end.
Definition w' (i : nat) (s : R) : R := match i with O => - (1 - s) | 1%nat => 1 - 2 * s | _ => s end.
Definition bernstein (a : nat) (s : R) : R :=
  match a with O => (1 - s) * (1 - s) | 1%nat => 2 * s * (1 - s) | _ => s * s end.
Definition sum3 (f : nat -> R) : R := f 0%nat + f 1%nat + f 2%nat.
Definition sum33 (f g : nat -> R) (p : nat -> nat -> Z) : R :=
  sum3 (fun i => f i * sum3 (fun j => g j * IZR (p i j))).

Definition spline (p : patch) (s t : R) : R := sum33 (fun i => w i s) (fun j => w j t) (entry p).
Definition spline_x (p : patch) (s t : R) : R := sum33 (fun i => w' i s) (fun j => w j t) (entry p).
Definition spline_y (p : patch) (s t : R) : R := sum33 (fun i => w i s) (fun j => w' j t) (entry p).

Ltac expand := unfold spline, spline_x, spline_y, sum33, sum3, coefficient, slope_x, slope_y, quarter, along_x, along_y,
  value, slope, halve, w, w', bernstein; cbn [flat_map map app entry nth Nat.mul Nat.add].

Lemma spline_in_bernstein : forall p s t,
  4 * spline p s t = sum33 (fun a => bernstein a s) (fun b => bernstein b t) (coefficient p).
Proof. intros. expand. repeat rewrite ?plus_IZR, ?minus_IZR, ?mult_IZR. field. Qed.

Lemma spline_x_in_bernstein : forall p s t,
  4 * spline_x p s t = sum33 (fun a => bernstein a s) (fun b => bernstein b t) (slope_x p).
Proof. intros. expand. repeat rewrite ?plus_IZR, ?minus_IZR, ?mult_IZR. field. Qed.

Lemma spline_y_in_bernstein : forall p s t,
  4 * spline_y p s t = sum33 (fun a => bernstein a s) (fun b => bernstein b t) (slope_y p).
Proof. intros. expand. repeat rewrite ?plus_IZR, ?minus_IZR, ?mult_IZR. field. Qed.

(** ** The checked coefficients bound the gradient on the cell. *)

Definition square_nonnegative : forall x, 0 <= x * x := Rle_0_sqr.

Definition norm (u v : R) : R := sqrt (u * u + v * v).

Definition norm_nonnegative u v : 0 <= norm u v := sqrt_pos _.

Lemma norm_square : forall u v, norm u v * norm u v = u * u + v * v.
Proof. intros u v. apply sqrt_sqrt. pose proof (square_nonnegative u). pose proof (square_nonnegative v). lra. Qed.

(** Cauchy and Schwarz: where |(x, y)| one <= c, the part of (x, y) in the direction (u, v) is within its part of c. *)
Lemma direction_below : forall one x y c u v, (0 <= c)%Z ->
  ((x * x + y * y) * (one * one) <= c * c)%Z -> u * IZR one * IZR x + v * IZR one * IZR y <= norm u v * IZR c.
Proof.
  intros one x y c u v C H. apply IZR_le in C, H. rewrite !mult_IZR, plus_IZR, !mult_IZR in H.
  set (o := IZR one) in *. set (a := IZR x) in *. set (b := IZR y) in *. set (d := IZR c) in *.
  apply Rsqr_incr_0_var; [| apply Rmult_le_pos; [apply norm_nonnegative | exact C]]. unfold Rsqr.
  replace (norm u v * d * (norm u v * d)) with (norm u v * norm u v * (d * d)) by ring. rewrite norm_square.
  pose proof (square_nonnegative u) as U. pose proof (square_nonnegative v) as V.
  apply Rle_trans with ((u * u + v * v) * ((a * a + b * b) * (o * o))); [| apply Rmult_le_compat_l; lra].
  pose proof (Rmult_le_pos _ _ (square_nonnegative (u * b - v * a)) (square_nonnegative o)). lra.
Qed.

(** A coefficient of the slope in the direction (u, v) is at most its part of the bound. *)
Lemma coefficient_direction : forall one z p a b u v, (0 < one)%Z -> (0 <= z)%Z -> is_gentle_at one z p a b = true ->
  u * IZR (slope_x p a b) + v * IZR (slope_y p a b) <= norm u v * (IZR z / IZR one) * IZR (coefficient p a b).
Proof.
  intros one z p a b u v O Z H. apply andb_prop in H as [V H]. apply Z.leb_le in V, H.
  apply (direction_below one _ _ _ u v) in H; [| nia]. rewrite mult_IZR in H. apply IZR_lt in O.
  apply Rmult_le_reg_r with (IZR one); [exact O |].
  replace (norm u v * (IZR z / IZR one) * IZR (coefficient p a b) * IZR one)
    with (norm u v * (IZR z * IZR (coefficient p a b))) by (field; lra). lra.
Qed.

Lemma sum3_below : forall f g, (forall a, (a < 3)%nat -> f a <= g a) -> sum3 f <= sum3 g.
Proof.
  intros f g H. unfold sum3. pose proof (H 0%nat ltac:(lia)). pose proof (H 1%nat ltac:(lia)).
  pose proof (H 2%nat ltac:(lia)). lra.
Qed.

Lemma sum33_combine : forall f g p q r x y c, (forall a, 0 <= f a) -> (forall b, 0 <= g b) ->
  (forall a b, (a < 3)%nat -> (b < 3)%nat -> x * IZR (p a b) + y * IZR (q a b) <= c * IZR (r a b)) ->
  x * sum33 f g p + y * sum33 f g q <= c * sum33 f g r.
Proof.
  intros f g p q r x y c F G H. unfold sum33.
  replace (x * _ + y * _) with (sum3 (fun a => f a * sum3 (fun b => g b * (x * IZR (p a b) + y * IZR (q a b)))))
    by (unfold sum3; ring).
  replace (c * _) with (sum3 (fun a => f a * sum3 (fun b => g b * (c * IZR (r a b))))) by (unfold sum3; ring).
  apply sum3_below. intros a A. apply Rmult_le_compat_l; [apply F |].
  apply sum3_below. intros b B. apply Rmult_le_compat_l; [apply G | apply H; assumption].
Qed.

Lemma bernstein_nonnegative : forall a s, 0 <= s <= 1 -> 0 <= bernstein a s.
Proof. intros a s S. unfold bernstein. destruct a as [| [| a]]; nra. Qed.

Lemma holds_below : forall n (h : nat -> nat -> bool), forallb (fun a => forallb (h a) (seq 0 n)) (seq 0 n) = true ->
  forall a b, (a < n)%nat -> (b < n)%nat -> h a b = true.
Proof.
  intros n h H a b A B. rewrite forallb_forall in H. specialize (H a). rewrite forallb_forall, in_seq in H.
  apply H; [lia | apply in_seq; lia].
Qed.

(** The slope in any direction is at most level times value, at every position of the cell. *)
Lemma gentle_slope : forall one z p s t u v, (0 < one)%Z -> (0 <= z)%Z -> is_gentle one z p = true ->
  0 <= s <= 1 -> 0 <= t <= 1 ->
  u * spline_x p s t + v * spline_y p s t <= norm u v * (IZR z / IZR one) * spline p s t.
Proof.
  intros one z p s t u v O Z H S T.
  apply Rmult_le_reg_l with 4; [lra |].
  replace (4 * (u * spline_x p s t + v * spline_y p s t)) with (u * (4 * spline_x p s t) + v * (4 * spline_y p s t)) by ring.
  replace (4 * (norm u v * (IZR z / IZR one) * spline p s t)) with (norm u v * (IZR z / IZR one) * (4 * spline p s t)) by ring.
  rewrite spline_in_bernstein, spline_x_in_bernstein, spline_y_in_bernstein.
  apply sum33_combine; try (intro; apply bernstein_nonnegative; assumption).
  intros a b A B. apply coefficient_direction; try assumption. apply (holds_below 3); assumption.
Qed.

(** ** Quarters. *)

Definition half (upper : bool) : R := if upper then 1 else 0.

Lemma quarter_spline : forall ux uy p s t,
  spline (quarter ux uy p) s t = 16 * spline p ((half ux + s) / 2) ((half uy + t) / 2).
Proof. intros [] [] p s t; unfold half; expand; repeat rewrite ?plus_IZR, ?minus_IZR, ?mult_IZR; field. Qed.

Lemma quarter_spline_x : forall ux uy p s t,
  spline_x (quarter ux uy p) s t = 8 * spline_x p ((half ux + s) / 2) ((half uy + t) / 2).
Proof. intros [] [] p s t; unfold half; expand; repeat rewrite ?plus_IZR, ?minus_IZR, ?mult_IZR; field. Qed.

Lemma quarter_spline_y : forall ux uy p s t,
  spline_y (quarter ux uy p) s t = 8 * spline_y p ((half ux + s) / 2) ((half uy + t) / 2).
Proof. intros [] [] p s t; unfold half; expand; repeat rewrite ?plus_IZR, ?minus_IZR, ?mult_IZR; field. Qed.

(** ** A level that is bilinear between the corners of a quarter. *)

(** The level at s, t, along the sides of a quarter. *)
Definition level_at (z : nat -> nat -> Z) (s t : R) : R :=
  (1 - s) * ((1 - t) * IZR (z 0%nat 0%nat) + t * IZR (z 0%nat 1%nat)) + s * ((1 - t) * IZR (z 1%nat 0%nat) + t * IZR (z 1%nat 1%nat)).

Definition cubic (a : nat) (s : R) : R :=
  match a with
  | O => (1 - s) * (1 - s) * (1 - s) | 1%nat => s * (1 - s) * (1 - s) | 2%nat => s * s * (1 - s) | _ => s * s * s
  end.
Definition sum4 (f : nat -> R) : R := f 0%nat + f 1%nat + f 2%nat + f 3%nat.
Definition sum44 (s t : R) (p : nat -> nat -> Z) : R := sum4 (fun a => cubic a s * sum4 (fun b => cubic b t * IZR (p a b))).

Lemma raised_times_level : forall f z s t,
  sum33 (fun a => bernstein a s) (fun b => bernstein b t) f * level_at z s t = sum44 s t (raised f z).
Proof.
  intros. unfold sum33, sum3, sum44, sum4, level_at, raised, moved, weighted, bernstein, cubic.
  repeat rewrite ?plus_IZR, ?mult_IZR. ring.
Qed.

Lemma level_everywhere : forall s t, level_at everywhere s t = 1.
Proof. intros. unfold level_at, everywhere. ring. Qed.

Lemma cubic_nonnegative : forall a s, 0 <= s <= 1 -> 0 <= cubic a s.
Proof. intros a s S. unfold cubic. destruct a as [| [| [| a]]]; repeat apply Rmult_le_pos; lra. Qed.

Lemma sum4_below : forall f g, (forall a, (a < 4)%nat -> f a <= g a) -> sum4 f <= sum4 g.
Proof.
  intros f g H. unfold sum4. pose proof (H 0%nat ltac:(lia)). pose proof (H 1%nat ltac:(lia)).
  pose proof (H 2%nat ltac:(lia)). pose proof (H 3%nat ltac:(lia)). lra.
Qed.

Lemma sum44_combine : forall s t p q r x y c, 0 <= s <= 1 -> 0 <= t <= 1 ->
  (forall a b, (a < 4)%nat -> (b < 4)%nat -> x * IZR (p a b) + y * IZR (q a b) <= c * IZR (r a b)) ->
  x * sum44 s t p + y * sum44 s t q <= c * sum44 s t r.
Proof.
  intros s t p q r x y c S T H. unfold sum44.
  replace (x * _ + y * _) with (sum4 (fun a => cubic a s * sum4 (fun b => cubic b t * (x * IZR (p a b) + y * IZR (q a b)))))
    by (unfold sum4; ring).
  replace (c * _) with (sum4 (fun a => cubic a s * sum4 (fun b => cubic b t * (c * IZR (r a b))))) by (unfold sum4; ring).
  apply sum4_below. intros a A. apply Rmult_le_compat_l; [apply cubic_nonnegative, S |].
  apply sum4_below. intros b B. apply Rmult_le_compat_l; [apply cubic_nonnegative, T | apply H; assumption].
Qed.

Lemma coefficient_direction_3 : forall one z p a b u v, is_gentle_at_3 one z p a b = true ->
  u * IZR one * IZR (raised (slope_x p) everywhere a b) + v * IZR one * IZR (raised (slope_y p) everywhere a b)
  <= norm u v * IZR (raised (coefficient p) z a b).
Proof. intros one z p a b u v H. apply andb_prop in H as [V H]. apply Z.leb_le in V, H. apply direction_below; assumption. Qed.

(** The slope in any direction is at most the bilinear level times the value. *)
Lemma gentle_slope_3 : forall one z p s t u v, (0 < one)%Z -> is_gentle_3 one z p = true ->
  0 <= s <= 1 -> 0 <= t <= 1 ->
  u * spline_x p s t + v * spline_y p s t <= norm u v * (level_at z s t / IZR one) * spline p s t.
Proof.
  intros one z p s t u v O H S T. pose proof (IZR_lt _ _ O) as P.
  apply Rmult_le_reg_l with (4 * IZR one); [lra |].
  replace (4 * IZR one * (norm u v * (level_at z s t / IZR one) * spline p s t))
    with (norm u v * (4 * spline p s t * level_at z s t)) by (field; lra).
  replace (4 * IZR one * (u * spline_x p s t + v * spline_y p s t))
    with (u * IZR one * (4 * spline_x p s t * 1) + v * IZR one * (4 * spline_y p s t * 1)) by ring.
  rewrite <- (level_everywhere s t), spline_in_bernstein, spline_x_in_bernstein, spline_y_in_bernstein, !raised_times_level.
  apply sum44_combine; [exact S | exact T |]. intros a b A B.
  apply coefficient_direction_3, (holds_below 4); assumption.
Qed.

(** The smallest level is at most the level everywhere. *)
Lemma smallest_below : forall zs k, (k < length zs)%nat -> (smallest zs <= nth k zs 0)%Z.
Proof.
  intros zs k. unfold smallest. generalize (hd 0%Z zs) as d. revert k.
  induction zs as [| z zs IH]; simpl; intros k d K; [lia |].
  destruct k as [| k]; [lia |]. specialize (IH k d ltac:(lia)). lia.
Qed.

Lemma smallest_nonnegative : forall zs, forallb (Z.leb 0) zs = true -> (0 <= smallest zs)%Z.
Proof.
  assert (A : forall zs d, (0 <= d)%Z -> forallb (Z.leb 0) zs = true -> (0 <= fold_right Z.min d zs)%Z).
  { induction zs as [| z zs IH]; simpl; intros d D H; [exact D |]. apply andb_prop in H as [Z H].
    apply Z.leb_le in Z. specialize (IH d D H). lia. }
  intros zs H. apply A; [| exact H]. destruct zs as [| z zs]; simpl in *; [lia |].
  apply andb_prop in H as [H _]. apply Z.leb_le, H.
Qed.

Lemma level_above : forall z m s t, 0 <= s <= 1 -> 0 <= t <= 1 ->
  (forall i j, (i < 2)%nat -> (j < 2)%nat -> (m <= z i j)%Z) -> IZR m <= level_at z s t.
Proof.
  intros z m s t S T H. unfold level_at.
  pose proof (IZR_le _ _ (H 0 0 ltac:(lia) ltac:(lia))%nat). pose proof (IZR_le _ _ (H 0 1 ltac:(lia) ltac:(lia))%nat).
  pose proof (IZR_le _ _ (H 1 0 ltac:(lia) ltac:(lia))%nat). pose proof (IZR_le _ _ (H 1 1 ltac:(lia) ltac:(lia))%nat).
  assert (M : forall a b x, 0 <= x <= 1 -> IZR m <= a -> IZR m <= b -> IZR m <= (1 - x) * a + x * b).
  { intros a b x X A B. pose proof (Rmult_le_compat_l (1 - x) _ _ ltac:(lra) A). pose proof (Rmult_le_compat_l x _ _ ltac:(lra) B). lra. }
  apply M; [exact S | apply M; assumption | apply M; assumption].
Qed.

Lemma smallest_below_level : forall zs ux uy s t, length zs = 16%nat -> 0 <= s <= 1 -> 0 <= t <= 1 ->
  IZR (smallest zs) <= level_at (corners zs ux uy) s t.
Proof.
  intros zs ux uy s t L S T. apply level_above; try assumption. intros i j I J.
  apply smallest_below. rewrite L. destruct ux, uy; lia.
Qed.

Lemma gentle_nonnegative : forall one z p s t, is_gentle one z p = true -> 0 <= s <= 1 -> 0 <= t <= 1 -> 0 <= spline p s t.
Proof.
  intros one z p s t H S T.
  pose proof (sum33_combine (fun a => bernstein a s) (fun b => bernstein b t) (coefficient p) (coefficient p) (coefficient p) 0 0 1) as C.
  rewrite <- spline_in_bernstein in C. assert (A : 0 * (4 * spline p s t) + 0 * (4 * spline p s t) <= 1 * (4 * spline p s t)); [| lra].
  apply C; try (intro; apply bernstein_nonnegative; assumption).
  intros a b A B. pose proof (holds_below 3 _ H a b A B) as E. apply andb_prop in E as [E _].
  apply Z.leb_le, IZR_le in E. lra.
Qed.

(** What the check of a patch proves on a quarter, in both ways. *)
Lemma quarter_slope : forall one zs p ux uy s t u v, (0 < one)%Z -> forallb (Z.leb 0) zs = true -> length zs = 16%nat ->
  patch_holds one zs p = true -> 0 <= s <= 1 -> 0 <= t <= 1 ->
  u * spline_x (quarter ux uy p) s t + v * spline_y (quarter ux uy p) s t
  <= norm u v * (level_at (corners zs ux uy) s t / IZR (2 * one)) * spline (quarter ux uy p) s t.
Proof.
  intros one zs p ux uy s t u v O Z L H S T. apply orb_prop in H as [H | H].
  - assert (M : (0 <= smallest zs)%Z) by (apply smallest_nonnegative, Z).
    assert (Hs : 0 <= (half ux + s) / 2 <= 1) by (unfold half; destruct ux; lra).
    assert (Ht : 0 <= (half uy + t) / 2 <= 1) by (unfold half; destruct uy; lra).
    pose proof (gentle_slope one _ p _ _ u v O M H Hs Ht) as G.
    pose proof (gentle_nonnegative _ _ _ _ _ H Hs Ht) as P. pose proof (smallest_below_level zs ux uy s t L S T) as B.
    rewrite quarter_spline, quarter_spline_x, quarter_spline_y, mult_IZR. apply IZR_lt in O.
    set (f := spline p _ _) in *. set (n := norm u v) in *. set (l := level_at _ _ _) in *.
    replace (n * (l / (2 * IZR one)) * (16 * f)) with (8 * (l * (n * f * / IZR one))) by (field; lra).
    replace (n * (IZR (smallest zs) / IZR one) * f) with (IZR (smallest zs) * (n * f * / IZR one)) in G by (field; lra).
    assert (K : 0 <= n * f * / IZR one).
    { apply Rmult_le_pos; [apply Rmult_le_pos; [apply norm_nonnegative | exact P] | left; apply Rinv_0_lt_compat; exact O]. }
    apply Rmult_le_compat_r with (r := n * f * / IZR one) in B; [lra | exact K].
  - rewrite forallb_forall in H. assert (I : forall b, In b [false; true]) by (intros []; simpl; auto).
    specialize (H ux (I ux)). cbv beta in H. rewrite forallb_forall in H. specialize (H uy (I uy)).
    apply gentle_slope_3; [lia | exact H | exact S | exact T].
Qed.

(** ** From the gradient to two positions of one cell. *)

(** The derivative along a line of a quadratic function, of a weight, and of the spline. *)
Lemma derivative_quadratic : forall a b c x, derivable_pt_lim (fun r => a + b * r + c * (r * r)) x (b + 2 * c * x).
Proof.
  intros a b c x.
  replace (b + 2 * c * x) with (0 + b * 1 + c * (1 * x + x * 1)) by ring.
  apply (derivable_pt_lim_plus (fun r => a + b * r) (fun r => c * (r * r))).
  - apply (derivable_pt_lim_plus (fun _ => a) (fun r => b * r)); [apply derivable_pt_lim_const |].
    apply (derivable_pt_lim_scal (fun r => r)). apply derivable_pt_lim_id.
  - apply (derivable_pt_lim_scal (fun r => r * r)).
    apply (derivable_pt_lim_mult (fun r => r) (fun r => r)); apply derivable_pt_lim_id.
Qed.

(** A function that is a + b r + c r r. *)
Ltac is_quadratic a b c :=
  apply (derivable_pt_lim_ext (fun r => a + b * r + c * (r * r))); [intro r; field |];
  match goal with |- derivable_pt_lim _ ?x ?d => replace d with (b + 2 * c * x) by field; apply derivative_quadratic end.

Lemma derivative_weight : forall i s u x, derivable_pt_lim (fun r => w i (s + r * u)) x (u * w' i (s + x * u)).
Proof.
  intros i s u x. unfold w, w'. destruct i as [| [| i]].
  - is_quadratic ((1 - s) * (1 - s) / 2) (- (1 - s) * u) (u * u / 2).
  - is_quadratic ((1 + 2 * s - 2 * (s * s)) / 2) ((1 - 2 * s) * u) (- (u * u)).
  - is_quadratic (s * s / 2) (s * u) (u * u / 2).
Qed.

Lemma derivative_sum3 : forall f f' g g' x, (forall i, derivable_pt_lim (f i) x (f' i)) ->
  (forall i, derivable_pt_lim (g i) x (g' i)) ->
  derivable_pt_lim (fun r => sum3 (fun i => f i r * g i r)) x (sum3 (fun i => f' i * g i x + f i x * g' i)).
Proof.
  intros f f' g g' x F G. unfold sum3.
  apply (derivable_pt_lim_plus (fun r => f 0%nat r * g 0%nat r + f 1%nat r * g 1%nat r) (fun r => f 2%nat r * g 2%nat r)).
  - apply (derivable_pt_lim_plus (fun r => f 0%nat r * g 0%nat r) (fun r => f 1%nat r * g 1%nat r)).
    + apply (derivable_pt_lim_mult (f 0%nat) (g 0%nat)); auto.
    + apply (derivable_pt_lim_mult (f 1%nat) (g 1%nat)); auto.
  - apply (derivable_pt_lim_mult (f 2%nat) (g 2%nat)); auto.
Qed.

Lemma derivative_spline : forall p s t u v x, derivable_pt_lim (fun r => spline p (s + r * u) (t + r * v)) x
  (u * spline_x p (s + x * u) (t + x * v) + v * spline_y p (s + x * u) (t + x * v)).
Proof.
  intros p s t u v x. unfold spline, spline_x, spline_y, sum33.
  set (row := fun i r => sum3 (fun j => w j (t + r * v) * IZR (entry p i j))).
  set (row' := fun i => sum3 (fun j => v * w' j (t + x * v) * IZR (entry p i j) + w j (t + x * v) * 0)).
  assert (R : forall i, derivable_pt_lim (row i) x (row' i)).
  { intro i. apply (derivative_sum3 (fun j r => w j (t + r * v)) _ (fun j _ => IZR (entry p i j))).
    - intro j. apply derivative_weight.
    - intro j. apply derivable_pt_lim_const. }
  pose proof (derivative_sum3 (fun i r => w i (s + r * u)) (fun i => u * w' i (s + x * u)) row row' x
    (fun i => derivative_weight i s u x) R) as D.
  match type of D with derivable_pt_lim _ _ ?d => match goal with |- derivable_pt_lim _ _ ?e => replace e with d end end.
  - exact D.
  - unfold row, row', sum3. ring.
Qed.

(** A function whose slope is at most e times its value grows by at most e to the integral E of e. *)
Lemma growth : forall f f' e E, (forall x, 0 <= x <= 1 -> derivable_pt_lim f x (f' x)) ->
  (forall x, 0 <= x <= 1 -> derivable_pt_lim E x (e x)) ->
  (forall x, 0 <= x <= 1 -> f' x <= e x * f x) -> f 1 <= exp (E 1 - E 0) * f 0.
Proof.
  intros f f' e E D DE H.
  destruct (MVT_cor2 (fun x => f x * exp (- E x)) (fun x => f' x * exp (- E x) + f x * (exp (- E x) * - e x)) 0 1)
    as [x [Q X]]; [lra | |].
  - intros x X. apply (derivable_pt_lim_mult f (fun r => exp (- E r))); [apply D; exact X |].
    apply (derivable_pt_lim_comp (fun r => - E r) exp).
    + apply (derivable_pt_lim_opp E). apply DE, X.
    + apply derivable_pt_lim_exp.
  - assert (S : f' x * exp (- E x) + f x * (exp (- E x) * - e x) <= 0).
    { pose proof (H x ltac:(lra)) as Hx. pose proof (exp_pos (- E x)) as P.
      apply Rmult_le_compat_r with (r := exp (- E x)) in Hx; [| lra]. lra. }
    assert (L : f 1 * exp (- E 1) <= f 0 * exp (- E 0)) by lra.
    apply Rmult_le_compat_l with (r := exp (E 1)) in L; [| left; apply exp_pos].
    replace (exp (E 1) * (f 1 * exp (- E 1))) with (f 1 * (exp (E 1) * exp (- E 1))) in L by ring.
    replace (exp (E 1) * (f 0 * exp (- E 0))) with (exp (E 1) * exp (- E 0) * f 0) in L by ring.
    rewrite <- !exp_plus, Rplus_opp_r, exp_0, Rmult_1_r in L. exact L.
Qed.

(** The mean of a bilinear level along a straight piece, by Simpson's rule, which is exact here. *)
Definition mean_level (z : nat -> nat -> Z) (s t s' t' : R) : R :=
  (level_at z s t + 4 * level_at z ((s + s') / 2) ((t + t') / 2) + level_at z s' t') / 6.

Lemma derivative_integral : forall a b c x,
  derivable_pt_lim (fun r => a * r + b * (r * r) + c * (r * (r * r))) x (a + 2 * b * x + 3 * c * (x * x)).
Proof.
  intros a b c x. replace (a + 2 * b * x + 3 * c * (x * x)) with (a + 2 * b * x + c * (1 * (x * x) + x * (0 + 2 * 1 * x))) by ring.
  apply (derivable_pt_lim_plus (fun r => a * r + b * (r * r)) (fun r => c * (r * (r * r)))).
  - apply (derivable_pt_lim_ext (fun r => 0 + a * r + b * (r * r))); [intro r; ring | apply derivative_quadratic].
  - apply (derivable_pt_lim_scal (fun r => r * (r * r))).
    apply (derivable_pt_lim_mult (fun r => r) (fun r => r * r)); [apply derivable_pt_lim_id |].
    apply (derivable_pt_lim_ext (fun r => 0 + 0 * r + 1 * (r * r))); [intro r; ring |].
    replace (0 + 2 * 1 * x) with (0 + 2 * 1 * x) by ring. apply derivative_quadratic.
Qed.

(** Two positions of one quarter: e to the mean level between them times their distance, in sides of the quarter. *)
Theorem within_quarter : forall one zs p ux uy s t s' t', (0 < one)%Z -> forallb (Z.leb 0) zs = true -> length zs = 16%nat ->
  patch_holds one zs p = true -> 0 <= s <= 1 -> 0 <= t <= 1 -> 0 <= s' <= 1 -> 0 <= t' <= 1 ->
  spline (quarter ux uy p) s' t'
  <= exp (norm (s' - s) (t' - t) * (mean_level (corners zs ux uy) s t s' t' / IZR (2 * one))) * spline (quarter ux uy p) s t.
Proof.
  intros one zs p ux uy s t s' t' O Z L H S T S' T'. set (z := corners zs ux uy). set (q := quarter ux uy p).
  pose proof (IZR_lt 0 (2 * one) ltac:(lia)) as P. set (k := norm (s' - s) (t' - t) / IZR (2 * one)).
  set (l0 := level_at z s t). set (l1 := level_at z s' t'). set (lm := level_at z ((s + s') / 2) ((t + t') / 2)).
  set (E := fun r => k * l0 * r + k * (4 * lm - 3 * l0 - l1) / 2 * (r * r) + k * (2 * l0 + 2 * l1 - 4 * lm) / 3 * (r * (r * r))).
  assert (A : forall r, level_at z (s + r * (s' - s)) (t + r * (t' - t))
    = l0 + (4 * lm - 3 * l0 - l1) * r + (2 * l0 + 2 * l1 - 4 * lm) * (r * r)).
  { intro r. unfold l0, l1, lm, level_at. field. }
  pose proof (growth (fun r => spline q (s + r * (s' - s)) (t + r * (t' - t))) _
    (fun r => k * level_at z (s + r * (s' - s)) (t + r * (t' - t))) E
    (fun x _ => derivative_spline q s t (s' - s) (t' - t) x)) as G. cbv beta in G.
  replace (s + 1 * (s' - s)) with s' in G by ring. replace (t + 1 * (t' - t)) with t' in G by ring.
  replace (s + 0 * (s' - s)) with s in G by ring. replace (t + 0 * (t' - t)) with t in G by ring.
  replace (norm (s' - s) (t' - t) * (mean_level z s t s' t' / IZR (2 * one))) with (E 1 - E 0).
  2: { unfold E, mean_level, k. fold l0 l1 lm. field. lra. }
  apply G.
  - intros x X. rewrite A. unfold E.
    replace (k * (l0 + (4 * lm - 3 * l0 - l1) * x + (2 * l0 + 2 * l1 - 4 * lm) * (x * x)))
      with (k * l0 + 2 * (k * (4 * lm - 3 * l0 - l1) / 2) * x + 3 * (k * (2 * l0 + 2 * l1 - 4 * lm) / 3) * (x * x)) by field.
    apply derivative_integral.
  - intros x X. set (sx := s + x * (s' - s)). set (tx := t + x * (t' - t)).
    assert (Sx : 0 <= sx <= 1) by (unfold sx; nra). assert (Tx : 0 <= tx <= 1) by (unfold tx; nra).
    pose proof (quarter_slope one zs p ux uy sx tx (s' - s) (t' - t) O Z L H Sx Tx) as Q. fold z q in Q.
    replace (k * level_at z sx tx) with (norm (s' - s) (t' - t) * (level_at z sx tx / IZR (2 * one))) by (unfold k; field; lra).
    exact Q.
Qed.

(** ** The claim for a whole area. *)

Definition patch_of (t : area) (c : cell) (y : nat) : patch := map (fun a => mass a y) (rows_around t c).

(** P(y | position), the position given by its cell and s, t in [0, 1] along the sides. *)
Record position := Position { cell_of : cell; ps : R; pt : R }.

Definition probability_at (t : area) (x : position) (y : nat) : R :=
  spline (patch_of t (cell_of x) y) (ps x) (pt x) / IZR total.

(** Cells beside each other along an axis share the rows around their common side. *)
Definition beside_x (c d : cell) : Prop :=
  forall i j, (i < 2)%nat -> (j < 3)%nat -> nth (3 * (i + 1) + j) (around c) O = nth (3 * i + j) (around d) O.
Definition beside_y (c d : cell) : Prop :=
  forall i j, (i < 3)%nat -> (j < 2)%nat -> nth (3 * i + (j + 1)) (around c) O = nth (3 * i + j) (around d) O.

(** The position in a quarter of a cell, with s, u in [0, 1] along the sides of the quarter. *)
Definition in_quarter (c : cell) (ux uy : bool) (s u : R) : position := Position c ((half ux + s) / 2) ((half uy + u) / 2).

(** A path of straight pieces, each in one closed quarter, and its length in nats: the integral of the level along it, a
    sum over the pieces of mean level times length. A side that two cells share belongs to both. *)
Inductive path (t : area) : position -> position -> R -> Prop :=
| stay : forall x, path t x x 0
| piece : forall c ux uy s u s' u' x l, In c (cells t) ->
    0 <= s <= 1 -> 0 <= u <= 1 -> 0 <= s' <= 1 -> 0 <= u' <= 1 -> path t (in_quarter c ux uy s' u') x l ->
    path t (in_quarter c ux uy s u) x
      (norm (s - s') (u - u') * (mean_level (corners (levels c) ux uy) s' u' s u / IZR (2 * one t)) + l)
| cross_x : forall c d u x l, In c (cells t) -> In d (cells t) -> beside_x c d ->
    path t (Position d 0 u) x l -> path t (Position c 1 u) x l
| cross_x_back : forall c d u x l, In c (cells t) -> In d (cells t) -> beside_x c d ->
    path t (Position c 1 u) x l -> path t (Position d 0 u) x l
| cross_y : forall c d s x l, In c (cells t) -> In d (cells t) -> beside_y c d ->
    path t (Position d s 0) x l -> path t (Position c s 1) x l
| cross_y_back : forall c d s x l, In c (cells t) -> In d (cells t) -> beside_y c d ->
    path t (Position c s 1) x l -> path t (Position d s 0) x l.

Section Claim.
Variable t : area.
Hypothesis C : check_positions t = true.

Lemma one_positive : (0 < one t)%Z.
Proof. unfold check_positions in C. rewrite !andb_true_iff in C. destruct C as [[O _] _]. apply Z.ltb_lt, O. Qed.

Lemma cell_checked : forall c, In c (cells t) -> forallb (Z.leb 0) (levels c) = true /\ length (levels c) = 16%nat /\
  length (around c) = 9%nat /\ reports_hold (one t) (levels c) (reports_of t) (rows_around t c) = true.
Proof.
  intros c I. unfold check_positions in C. apply andb_prop in C as [_ H]. rewrite forallb_forall in H. apply H in I.
  unfold cell_holds in I. rewrite !andb_true_iff, !Nat.eqb_eq in I. tauto.
Qed.

Lemma reports_hold_at : forall zs m nine, reports_hold (one t) zs m nine = true ->
  forall y, (y < m)%nat -> patch_holds (one t) zs (map (fun a => mass a y) nine) = true.
Proof.
  induction m as [| m IH]; intros nine H y L; [lia |]. simpl in H. apply andb_prop in H as [H1 H2].
  destruct y as [| y].
  - replace (map (fun a => mass a 0) nine) with (map (hd 0%Z) nine); [exact H1 |].
    apply map_ext. intros [| x a]; reflexivity.
  - specialize (IH _ H2 y ltac:(lia)). rewrite map_map in IH.
    replace (map (fun a => mass a (S y)) nine) with (map (fun a => mass (tl a) y) nine); [exact IH |].
    apply map_ext. intros [| x a]; unfold mass; simpl; [destruct y; reflexivity | reflexivity].
Qed.

Lemma patch_checked : forall c y, In c (cells t) -> (y < reports_of t)%nat ->
  patch_holds (one t) (levels c) (patch_of t c y) = true.
Proof. intros c y I Y. apply reports_hold_at with (reports_of t); [apply cell_checked, I | exact Y]. Qed.

Lemma entry_of_patch : forall c y i j, In c (cells t) -> (i < 3)%nat -> (j < 3)%nat ->
  entry (patch_of t c y) i j = mass (nth (nth (3 * i + j) (around c) O) (area_rows t) []) y.
Proof.
  intros c y i j I Hi Hj. destruct (cell_checked c I) as [_ [_ [N _]]].
  unfold entry, patch_of, rows_around. rewrite map_map.
  rewrite nth_indep with (d' := mass (nth O (area_rows t) []) y) by (rewrite map_length; lia).
  apply (map_nth (fun u => mass (nth u (area_rows t) []) y)).
Qed.

(** The spline is continuous across a side that two cells share. *)
Lemma spline_across_x : forall c d u y, In c (cells t) -> In d (cells t) -> beside_x c d ->
  spline (patch_of t c y) 1 u = spline (patch_of t d y) 0 u.
Proof.
  intros c d u y Ic Id B. unfold spline, sum33, sum3. rewrite !entry_of_patch by (assumption || lia).
  rewrite <- (B 0 0)%nat, <- (B 0 1)%nat, <- (B 0 2)%nat, <- (B 1 0)%nat, <- (B 1 1)%nat, <- (B 1 2)%nat by lia.
  simpl Nat.add. simpl Nat.mul. unfold w. field.
Qed.

Lemma spline_across_y : forall c d s y, In c (cells t) -> In d (cells t) -> beside_y c d ->
  spline (patch_of t c y) s 1 = spline (patch_of t d y) s 0.
Proof.
  intros c d s y Ic Id B. unfold spline, sum33, sum3. rewrite !entry_of_patch by (assumption || lia).
  rewrite <- (B 0 0)%nat, <- (B 0 1)%nat, <- (B 1 0)%nat, <- (B 1 1)%nat, <- (B 2 0)%nat, <- (B 2 1)%nat by lia.
  simpl Nat.add. simpl Nat.mul. unfold w. field.
Qed.

(** For all positions x, x', along every path between them of length l, and every report y:
    P(y | x) <= e^l P(y | x'). *)
Theorem private_between_positions : forall x x' l, path t x x' l -> forall y, (y < reports_of t)%nat ->
  probability_at t x y <= exp l * probability_at t x' y.
Proof.
  intros x x' l P y Y. unfold probability_at. pose proof total_positive as T.
  assert (S : spline (patch_of t (cell_of x) y) (ps x) (pt x)
              <= exp l * spline (patch_of t (cell_of x') y) (ps x') (pt x')).
  { induction P as [x | c ux uy s u s' u' x l I S U S' U' P IH | c d u x l Ic Id B P IH | c d u x l Ic Id B P IH
      | c d s x l Ic Id B P IH | c d s x l Ic Id B P IH]; simpl in *.
    - rewrite exp_0. lra.
    - destruct (cell_checked c I) as [Z [L _]]. pose proof (patch_checked c y I Y) as H.
      pose proof (within_quarter (one t) (levels c) _ ux uy s' u' s u one_positive Z L H S' U' S U) as W.
      rewrite !quarter_spline in W. rewrite exp_plus. set (e := exp (norm _ _ * _)) in *.
      assert (E : 0 < e) by apply exp_pos.
      apply Rmult_le_compat_l with (r := e) in IH; lra.
    - rewrite (spline_across_x c d u y Ic Id B). exact IH.
    - rewrite <- (spline_across_x c d u y Ic Id B). exact IH.
    - rewrite (spline_across_y c d s y Ic Id B). exact IH.
    - rewrite <- (spline_across_y c d s y Ic Id B). exact IH. }
  unfold Rdiv. rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; exact T | exact S].
Qed.
End Claim.
