"""Who is treated like whom by the models of the study that come nearest to the paper's levels."""
