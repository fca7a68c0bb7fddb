(** * No mechanism has less expected loss than the bound.

    The certificate holds an integer multiplier of every secret and, for every report, a tree of the edges of the
    claim. The trees become flows inside this file, and only the flows are used in the proof: wrong trees can prove
    less, never more. The mechanism of the theorem is any family of real numbers P(y | u) that is private along the
    edges, with the true exponential. *)
From Coq Require Import ZArith List Bool Reals Lia Lra Psatz Arith FMapPositive.
From Mechdesign Require Import Exponential Edges.
Import ListNotations.
Open Scope Z_scope.

(** Add d to entry k. *)
Fixpoint add_at (k : nat) (d : Z) (r : list Z) : list Z :=
  match r, k with
  | [], _ => []
  | x :: r', O => (x + d) :: r'
  | x :: r', S k' => x :: add_at k' d r'
  end.

(** An edge in one direction, an integer factor with factor / 2^w <= e^-length, and whether that factor is proved. *)
Record arc := Arc { from : nat; to : nat; nats : Z; factor : Z; is_usable : bool }.

(** Flow on the constraint P(from) <= e^length P(to) of one report. *)
Record flow := Flow { on : arc; amount : Z }.

(** A step of a tree joins a child to its parent by the edge of this index; [child_is_tail] tells the direction. *)
Record step := Step { edge_index : positive; child_is_tail : bool }.

(** One report: its loss for every secret, by objective, and its tree, children before their parents. *)
Record column := Column { costs : list (list Z); steps : list step }.

Record certificate := Certificate {
  graph : list edge; nats_denominator : Z;   (** the claim *)
  weights : list Z;                          (** of the objectives; one objective has weight 1 *)
  multipliers : list Z;
  columns : list column
}.

Section Check.
Variables (w : Z) (k : nat).

Definition arc_of (q : Z) (e : edge) (forward : bool) : arc :=
  let f := exp_lower w k (- num e) q in
  let usable := 0 <=? one_plus w k (- num e) q in
  if forward then Arc (tail e) (head e) (num e) f usable else Arc (head e) (tail e) (num e) f usable.

Definition arc_holds (n : nat) (a : arc) : bool := Nat.ltb (from a) n && Nat.ltb (to a) n && is_usable a.

(** Flow x of an arc takes 2^w x from the residual of [to] and gives factor x to that of [from]. *)
Definition push (r : list Z) (f : flow) : list Z :=
  add_at (from (on f)) (amount f * factor (on f)) (add_at (to (on f)) (- (amount f * 2 ^ w)) r).

(** The flow that settles the residual of a child: what it lacks is taken from its parent, what is left is given. *)
Definition settle (r : list Z) (child_to_parent parent_to_child : arc) : flow :=
  let x := nth (from child_to_parent) r 0 in
  if x <? 0 then Flow child_to_parent (- (x / Z.max 1 (factor child_to_parent))) else Flow parent_to_child (x / 2 ^ w).

(** Both arcs of every edge, by index. *)
Definition arcs := PositiveMap.t (arc * arc).

Fixpoint add_arcs (q : Z) (i : positive) (es : list edge) (m : arcs) : arcs :=
  match es with
  | [] => m
  | e :: es' => add_arcs q (Pos.succ i) es' (PositiveMap.add i (arc_of q e true, arc_of q e false) m)
  end.

Definition arcs_of (q : Z) (es : list edge) : arcs := add_arcs q 1 es (PositiveMap.empty _).
(** Settle all steps of a tree; the residual of the end proves the report. *)
Fixpoint settle_all (n : nat) (m : arcs) (r : list Z) (ss : list step) : option (list Z) :=
  match ss with
  | [] => Some r
  | s :: ss' =>
      match PositiveMap.find (edge_index s) m with
      | None => None
      | Some (forward, backward) =>
          let f := if child_is_tail s then settle r forward backward else settle r backward forward in
          if (0 <=? amount f) && arc_holds n (on f) then settle_all n m (push r f) ss' else None
      end
  end.

Fixpoint add_rows (a b : list Z) : list Z :=
  match a, b with x :: a', y :: b' => x + y :: add_rows a' b' | _, _ => [] end.

(** The weighted sum of the costs of a report, by secret. *)
Fixpoint weighted (n : nat) (ws : list Z) (cs : list (list Z)) : list Z :=
  match ws, cs with
  | x :: ws', c :: cs' => add_rows (map (Z.mul x) c) (weighted n ws' cs')
  | _, _ => repeat 0 n
  end.

(** (cost - multiplier) 2^w, by secret. *)
Definition reduced (l c : list Z) : list Z := map (Z.mul (2 ^ w)) (add_rows c (map Z.opp l)).

Definition column_holds (m : arcs) (ws l : list Z) (c : column) : bool :=
  Nat.eqb (length (costs c)) (length ws) && forallb (fun x => Nat.eqb (length x) (length l)) (costs c) &&
  match settle_all (length l) m (reduced l (weighted (length l) ws (costs c))) (steps c) with
  | Some r => forallb (Z.leb 0) r
  | None => false
  end.

(** The whole check: integers in, true or false out. *)
Definition check_bound (b : certificate) : bool :=
  (0 <=? w) && (0 <? nats_denominator b) && forallb (Z.leb 0) (weights b) &&
  forallb (column_holds (arcs_of (nats_denominator b) (graph b)) (weights b) (multipliers b))
    (columns b).

Open Scope R_scope.

(** Sum over secrets u of r(u) g(u). *)
Fixpoint dot (r : list Z) (g : nat -> R) : R :=
  match r with [] => 0 | x :: r' => IZR x * g O + dot r' (fun i => g (S i)) end.

Lemma dot_add_at : forall r i d g, (i < length r)%nat -> dot (add_at i d r) g = dot r g + IZR d * g i.
Proof.
  induction r as [| x r IH]; simpl; intros i d g H; [lia |].
  destruct i; simpl; [rewrite plus_IZR; ring | rewrite IH by lia; ring].
Qed.

Lemma length_add_at : forall r i d, length (add_at i d r) = length r.
Proof. induction r; destruct i; simpl; intros; auto. Qed.

Lemma length_add_rows : forall a b, length a = length b -> length (add_rows a b) = length b.
Proof. induction a; destruct b; simpl; intros; try lia. rewrite IHa; lia. Qed.

Lemma dot_add_rows : forall a b g, length a = length b -> dot (add_rows a b) g = dot a g + dot b g.
Proof.
  induction a as [| x a IH]; destruct b as [| y b]; simpl; intros g H; try lia; try ring.
  rewrite IH by lia. rewrite plus_IZR. ring.
Qed.

Lemma dot_scale : forall x a g, dot (map (Z.mul x) a) g = IZR x * dot a g.
Proof. induction a as [| y a IH]; simpl; intros; [ring | rewrite IH, mult_IZR; ring]. Qed.

Lemma dot_opposite : forall a g, dot (map Z.opp a) g = - dot a g.
Proof. induction a as [| y a IH]; simpl; intros; [ring | rewrite IH, opp_IZR; ring]. Qed.

Lemma dot_repeat_zero : forall n g, dot (repeat 0%Z n) g = 0.
Proof. induction n as [| n IH]; simpl; intros; [ring | rewrite IH; ring]. Qed.

Lemma dot_nonnegative : forall r g, forallb (Z.leb 0) r = true -> (forall i, 0 <= g i) -> 0 <= dot r g.
Proof.
  induction r as [| x r IH]; simpl; intros g H G; [lra |].
  apply andb_prop in H as [H1 H2]. apply Z.leb_le, IZR_le in H1.
  pose proof (IH (fun i => g (S i)) H2 (fun i => G (S i))). pose proof (Rmult_le_pos _ _ H1 (G O)). lra.
Qed.

(** ** Flow on a constraint that a mechanism satisfies cannot raise the sum. *)

Definition satisfies (q : Z) (g : nat -> R) (a : arc) : Prop := g (from a) <= exp (IZR (nats a) / IZR q) * g (to a).

Definition factor_is_right (q : Z) (a : arc) : Prop :=
  factor a = exp_lower w k (- nats a) q /\ is_usable a = (0 <=? one_plus w k (- nats a) q)%Z.

Lemma factor_below : forall q g a, (0 <= w)%Z -> (0 < q)%Z -> factor_is_right q a ->
  is_usable a = true -> 0 <= g (from a) -> satisfies q g a ->
  IZR (factor a) * g (from a) <= IZR (2 ^ w) * g (to a).
Proof.
  intros q g a W Q [F U] O G S. rewrite F. rewrite U in O. apply Z.leb_le in O.
  pose proof (exp_lower_correct w k (- nats a) q W Q O) as X. pose proof (power_positive_real w W) as D.
  set (d := IZR (2 ^ w)) in *. set (f := IZR (exp_lower w k (- nats a) q)) in *.
  replace (IZR (- nats a) / IZR q) with (- (IZR (nats a) / IZR q)) in X
    by (rewrite opp_IZR; field; apply not_0_IZR; lia).
  unfold satisfies in S. set (x := IZR (nats a) / IZR q) in *.
  assert (Y : exp (- x) * g (from a) <= g (to a)).
  { apply Rmult_le_compat_l with (r := exp (- x)) in S; [| left; apply exp_pos].
    rewrite <- Rmult_assoc, <- exp_plus, Rplus_opp_l, exp_0, Rmult_1_l in S. exact S. }
  apply Rmult_le_compat_r with (r := g (from a)) in X; [| exact G].
  apply Rmult_le_reg_r with (/ d); [apply Rinv_0_lt_compat; exact D |].
  replace (d * g (to a) * / d) with (g (to a)) by (field; lra).
  replace (f * g (from a) * / d) with (f / d * g (from a)) by (field; lra). lra.
Qed.

Lemma push_below : forall q r f g, (0 <= w)%Z -> (0 < q)%Z -> factor_is_right q (on f) -> (0 <= amount f)%Z ->
  arc_holds (length r) (on f) = true -> (forall i, 0 <= g i) -> satisfies q g (on f) ->
  dot (push r f) g <= dot r g.
Proof.
  intros q r f g W Q F A H G S. unfold arc_holds in H.
  apply andb_prop in H as [H O]. apply andb_prop in H as [Hf Ht].
  apply Nat.ltb_lt in Hf, Ht. apply IZR_le in A.
  unfold push. rewrite dot_add_at by (rewrite length_add_at; exact Hf). rewrite dot_add_at by exact Ht.
  rewrite opp_IZR, !mult_IZR.
  pose proof (factor_below q g (on f) W Q F O (G _) S) as B.
  apply Rmult_le_compat_l with (r := IZR (amount f)) in B; [lra | exact A].
Qed.

Lemma length_push : forall r f, length (push r f) = length r.
Proof. intros. unfold push. rewrite !length_add_at. reflexivity. Qed.

(** Every arc in the map comes from an edge of the claim. *)
Lemma add_arcs_of_edges : forall q es i m j f b, PositiveMap.find j (add_arcs q i es m) = Some (f, b) ->
  PositiveMap.find j m = Some (f, b) \/ exists e, In e es /\ f = arc_of q e true /\ b = arc_of q e false.
Proof.
  induction es as [| e es IH]; simpl; intros i m j f b H; [left; exact H |].
  destruct (IH _ _ _ _ _ H) as [M | [e' [I E]]]; [| right; exists e'; auto].
  destruct (Pos.eq_dec j i) as [-> | D].
  - rewrite PositiveMap.gss in M. injection M as <- <-. right. exists e. auto.
  - rewrite PositiveMap.gso in M by exact D. left. exact M.
Qed.

Lemma arcs_of_edges : forall q es j f b, PositiveMap.find j (arcs_of q es) = Some (f, b) ->
  exists e, In e es /\ f = arc_of q e true /\ b = arc_of q e false.
Proof.
  intros q es j f b H. destruct (add_arcs_of_edges _ _ _ _ _ _ _ H) as [M | E]; [| exact E].
  rewrite PositiveMap.gempty in M. discriminate.
Qed.

(** A mechanism column g is private along the edges, either way. *)
Definition private_column (q : Z) (es : list edge) (g : nat -> R) : Prop :=
  forall e, In e es ->
    g (tail e) <= exp (IZR (num e) / IZR q) * g (head e) /\ g (head e) <= exp (IZR (num e) / IZR q) * g (tail e).

Lemma settle_all_below : forall q es g, (0 <= w)%Z -> (0 < q)%Z -> (forall i, 0 <= g i) -> private_column q es g ->
  forall ss r r', settle_all (length r) (arcs_of q es) r ss = Some r' -> dot r' g <= dot r g.
Proof.
  intros q es g W Q G P. induction ss as [| s ss IH]; intros r r' H; simpl in H.
  - injection H as <-. lra.
  - destruct (PositiveMap.find (edge_index s) (arcs_of q es)) as [[f b] |] eqn:M; [| discriminate].
    destruct (arcs_of_edges _ _ _ _ _ M) as [e [I [-> ->]]]. destruct (P e I) as [P1 P2].
    set (x := if child_is_tail s then _ else _) in H.
    destruct ((0 <=? amount x)%Z && arc_holds (length r) (on x)) eqn:A; [| discriminate].
    apply andb_prop in A as [A1 A2]. apply Z.leb_le in A1.
    assert (X : on x = arc_of q e true \/ on x = arc_of q e false).
    { unfold x, settle. destruct (child_is_tail s); destruct (_ <? 0)%Z; simpl; auto. }
    apply Rle_trans with (dot (push r x) g).
    + apply IH. rewrite length_push. exact H.
    + apply push_below with q; try assumption.
      * destruct X as [-> | ->]; split; reflexivity.
      * destruct X as [-> | ->]; assumption.
Qed.

(** ** One report: the multipliers cost no more than it. *)

Fixpoint weighted_dots (ws : list Z) (cs : list (list Z)) (g : nat -> R) : R :=
  match ws, cs with x :: ws', c :: cs' => IZR x * dot c g + weighted_dots ws' cs' g | _, _ => 0 end.

Lemma length_weighted : forall n ws cs, forallb (fun x => Nat.eqb (length x) n) cs = true ->
  length (weighted n ws cs) = n.
Proof.
  induction ws as [| x ws IH]; intros cs H; [apply repeat_length |].
  destruct cs as [| c cs]; simpl; [apply repeat_length |]. simpl in H. apply andb_prop in H as [H1 H2].
  apply Nat.eqb_eq in H1. rewrite length_add_rows; rewrite IH by exact H2; [reflexivity | rewrite map_length; exact H1].
Qed.

Lemma dot_weighted : forall n g ws cs, forallb (fun x => Nat.eqb (length x) n) cs = true ->
  dot (weighted n ws cs) g = weighted_dots ws cs g.
Proof.
  induction ws as [| x ws IH]; intros cs H; [apply dot_repeat_zero |].
  destruct cs as [| c cs]; simpl; [apply dot_repeat_zero |]. simpl in H. apply andb_prop in H as [H1 H2].
  apply Nat.eqb_eq in H1. rewrite dot_add_rows by (rewrite map_length, length_weighted; assumption).
  rewrite dot_scale, IH by exact H2. reflexivity.
Qed.

Lemma column_below : forall q es ws l c g, (0 <= w)%Z -> (0 < q)%Z ->
  column_holds (arcs_of q es) ws l c = true -> (forall i, 0 <= g i) -> private_column q es g ->
  dot l g <= weighted_dots ws (costs c) g.
Proof.
  intros q es ws l c g W Q H G P. unfold column_holds in H.
  apply andb_prop in H as [H S]. apply andb_prop in H as [_ L].
  destruct (settle_all _ _ _ _) as [r |] eqn:E; [| discriminate].
  pose proof (length_weighted (length l) ws (costs c) L) as Len.
  assert (LR : length (reduced l (weighted (length l) ws (costs c))) = length l).
  { unfold reduced. rewrite map_length, length_add_rows; rewrite map_length; [reflexivity | exact Len]. }
  rewrite <- LR in E at 1. pose proof (settle_all_below q es g W Q G P _ _ _ E) as B.
  pose proof (dot_nonnegative r g S G) as N. pose proof (power_positive_real w W) as D.
  unfold reduced in B. rewrite dot_scale, dot_add_rows in B by (rewrite map_length; exact Len).
  rewrite dot_opposite, dot_weighted in B by exact L.
  apply Rmult_le_reg_l with (IZR (2 ^ w)); [exact D | lra].
Qed.

(** ** Mechanisms. *)

(** The expected loss of P by the objective i: the sum over reports y and secrets u of cost(u, y) P(y | u). *)
Fixpoint loss (i : nat) (cs : list column) (P : nat -> nat -> R) (y : nat) : R :=
  match cs with [] => 0 | c :: cs' => dot (nth i (costs c) []) (fun u => P u y) + loss i cs' P (S y) end.

(** The sum of P(y | u) over the reports y. *)
Fixpoint row_sum (m : nat) (P : nat -> nat -> R) (u y : nat) : R :=
  match m with O => 0 | S m' => P u y + row_sum m' P u (S y) end.

(** A mechanism: probabilities that sum to 1 for every secret, private along every edge of the claim. *)
Record mechanism (b : certificate) (P : nat -> nat -> R) : Prop := Mechanism {
  nonnegative : forall u y, 0 <= P u y;
  sums_to_one : forall u, (u < length (multipliers b))%nat -> row_sum (length (columns b)) P u 0 = 1;
  private : forall y, private_column (nats_denominator b) (graph b) (fun u => P u y)
}.

Fixpoint weighted_losses (i : nat) (ws : list Z) (cs : list column) (P : nat -> nat -> R) (y : nat) : R :=
  match ws with [] => 0 | x :: ws' => IZR x * loss i cs P y + weighted_losses (S i) ws' cs P y end.

Lemma dot_plus : forall r g h, dot r (fun i => g i + h i) = dot r g + dot r h.
Proof.
  induction r as [| x r IH]; simpl; intros; [ring |].
  rewrite (IH (fun i => g (S i)) (fun i => h (S i))). ring.
Qed.

Lemma dot_of_zero : forall r, dot r (fun _ => 0) = 0.
Proof. induction r as [| x r IH]; simpl; [reflexivity | rewrite IH; ring]. Qed.

Lemma dot_same : forall r g h, (forall i, (i < length r)%nat -> g i = h i) -> dot r g = dot r h.
Proof.
  induction r as [| x r IH]; simpl; intros g h H; [reflexivity |].
  rewrite H by lia. rewrite (IH (fun i => g (S i)) (fun i => h (S i))); [reflexivity | intros; apply H; lia].
Qed.

Lemma dot_of_one : forall r, dot r (fun _ => 1) = IZR (fold_right Z.add 0%Z r).
Proof. induction r as [| x r IH]; simpl; [reflexivity | rewrite IH, plus_IZR; ring]. Qed.

Lemma skipn_first : forall (cs : list (list Z)) i, (i < length cs)%nat -> skipn i cs = nth i cs [] :: skipn (S i) cs.
Proof.
  induction cs as [| c cs IH]; intros i H; [simpl in H; lia |].
  destruct i as [| i]; [reflexivity |]. simpl in H. simpl. apply IH. lia.
Qed.

Lemma weighted_losses_step : forall P y c cs ws i, (i + length ws = length (costs c))%nat ->
  weighted_losses i ws (c :: cs) P y
  = weighted_dots ws (skipn i (costs c)) (fun u => P u y) + weighted_losses i ws cs P (S y).
Proof.
  intros P y c cs. induction ws as [| x ws IH]; simpl; intros i L; [ring |].
  rewrite IH by lia. rewrite (skipn_first (costs c) i) by lia. simpl. ring.
Qed.

Lemma weighted_losses_none : forall P ws i y, weighted_losses i ws [] P y = 0.
Proof. intros P. induction ws as [| x ws IH]; simpl; intros; [reflexivity | rewrite IH; ring]. Qed.

Lemma columns_below : forall q es ws l P, (0 <= w)%Z -> (0 < q)%Z -> (forall u y, 0 <= P u y) ->
  (forall y, private_column q es (fun u => P u y)) ->
  forall cs y, forallb (column_holds (arcs_of q es) ws l) cs = true ->
  dot l (fun u => row_sum (length cs) P u y) <= weighted_losses 0 ws cs P y.
Proof.
  intros q es ws l P W Q N PR. induction cs as [| c cs IH]; simpl; intros y H.
  - rewrite dot_of_zero, weighted_losses_none. lra.
  - apply andb_prop in H as [H1 H2]. rewrite dot_plus.
    assert (L : length (costs c) = length ws).
    { unfold column_holds in H1. apply andb_prop in H1 as [H1 _]. apply andb_prop in H1 as [H1 _].
      apply Nat.eqb_eq in H1. exact H1. }
    rewrite weighted_losses_step by (simpl; lia). simpl skipn.
    apply Rplus_le_compat; [| apply IH, H2].
    apply column_below with q es; auto.
Qed.

(** ** The theorem: the weighted losses of every mechanism are at least the sum of the multipliers. *)
Theorem weighted_losses_above : forall b, check_bound b = true -> forall P, mechanism b P ->
  IZR (fold_right Z.add 0%Z (multipliers b)) <= weighted_losses 0 (weights b) (columns b) P 0.
Proof.
  intros b C P [N S PR]. unfold check_bound in C.
  apply andb_prop in C as [C H]. apply andb_prop in C as [C _]. apply andb_prop in C as [W Q].
  apply Z.leb_le in W. apply Z.ltb_lt in Q. rewrite <- dot_of_one.
  rewrite (dot_same _ (fun _ => 1) (fun u => row_sum (length (columns b)) P u 0)).
  - apply columns_below with (nats_denominator b) (graph b); assumption.
  - intros i L. symmetry. apply S, L.
Qed.

(** One objective: no mechanism that is private along the edges has less expected loss than the bound. *)
Corollary no_mechanism_below : forall b, check_bound b = true -> weights b = [1%Z] -> forall P, mechanism b P ->
  IZR (fold_right Z.add 0%Z (multipliers b)) <= loss 0 (columns b) P 0.
Proof.
  intros b C O P M. pose proof (weighted_losses_above b C P M) as H. rewrite O in H. simpl in H. lra.
Qed.

Lemma weighted_losses_below : forall cs P ws i M, forallb (Z.leb 0) ws = true ->
  (forall j, (i <= j < i + length ws)%nat -> loss j cs P 0 <= M) ->
  weighted_losses i ws cs P 0 <= IZR (fold_right Z.add 0%Z ws) * M.
Proof.
  intros cs P. induction ws as [| x ws IH]; simpl; intros i M H L; [lra |].
  apply andb_prop in H as [H1 H2]. apply Z.leb_le, IZR_le in H1. rewrite plus_IZR.
  assert (A : weighted_losses (S i) ws cs P 0 <= IZR (fold_right Z.add 0%Z ws) * M) by (apply IH; [exact H2 | intros; apply L; lia]).
  assert (B : IZR x * loss i cs P 0 <= IZR x * M) by (apply Rmult_le_compat_l; [exact H1 | apply L; lia]). lra.
Qed.

(** Several priors or losses: a mechanism whose loss is at most M by every objective has M sum(weights) >= bound. *)
Corollary no_mechanism_below_worst : forall b, check_bound b = true -> forall P, mechanism b P ->
  forall M, (forall i, (i < length (weights b))%nat -> loss i (columns b) P 0 <= M) ->
  IZR (fold_right Z.add 0%Z (multipliers b)) <= IZR (fold_right Z.add 0%Z (weights b)) * M.
Proof.
  intros b C P H M L. eapply Rle_trans; [apply (weighted_losses_above b C P H) |].
  apply weighted_losses_below.
  - unfold check_bound in C. apply andb_prop in C as [C _]. apply andb_prop in C as [_ C]. exact C.
  - intros j J. apply L. lia.
Qed.

Fixpoint limits_sum (ws : list Z) (limits : list R) : R :=
  match ws, limits with x :: ws', t :: limits' => IZR x * t + limits_sum ws' limits' | _, _ => 0 end.

Lemma weighted_losses_limited : forall cs P ws limits i, forallb (Z.leb 0) ws = true -> length limits = length ws ->
  (forall j, (j < length ws)%nat -> loss (i + j) cs P 0 <= nth j limits 0) ->
  weighted_losses i ws cs P 0 <= limits_sum ws limits.
Proof.
  intros cs P. induction ws as [| x ws IH]; intros limits i H E L; destruct limits as [| t ts]; try discriminate; simpl.
  - lra.
  - simpl in H. apply andb_prop in H as [H1 H2]. apply Z.leb_le, IZR_le in H1.
    injection E as E. pose proof (L O) as L0. rewrite Nat.add_0_r in L0. simpl in L0.
    assert (A : weighted_losses (S i) ws cs P 0 <= limits_sum ws ts).
    { apply IH; [exact H2 | exact E |]. intros j J. specialize (L (S j)). simpl in L.
      rewrite Nat.add_succ_comm. apply L. simpl. lia. }
    assert (B : IZR x * loss i cs P 0 <= IZR x * t) by (apply Rmult_le_compat_l; [exact H1 | apply L0; simpl; lia]). lra.
Qed.

(** Limits on further losses: the first objective is minimised, and every other stays within its limit. *)
Corollary no_mechanism_below_within_limits : forall b x ws, check_bound b = true -> weights b = x :: ws ->
  forall P, mechanism b P -> forall limits, length limits = length ws ->
  (forall j, (j < length ws)%nat -> loss (S j) (columns b) P 0 <= nth j limits 0) ->
  IZR (fold_right Z.add 0%Z (multipliers b)) - limits_sum ws limits <= IZR x * loss 0 (columns b) P 0.
Proof.
  intros b x ws C E P H limits L A. pose proof (weighted_losses_above b C P H) as B. rewrite E in B. simpl in B.
  assert (N : forallb (Z.leb 0) ws = true).
  { unfold check_bound in C. apply andb_prop in C as [C _]. apply andb_prop in C as [_ C]. rewrite E in C.
    simpl in C. apply andb_prop in C as [_ C]. exact C. }
  pose proof (weighted_losses_limited (columns b) P ws limits 1 N L A). lra.
Qed.
End Check.
