"""What the made results of these tests are of."""

TASK = "lieder_base"
TESTED = "direct/neg_pos_s>pos_pos_s:affirmative_negation"
OTHER = "direct/pos_neg_s>pos_pos_s:affirmative_negation"
OF_DOUBT = "direct/pos_neg_s>pos_pos_s:know_doubt"
