"""What `mechdesign client` hands to an app: JavaScript in modules of one thought each, its types, a page and a README.

`output/client/` joins the modules into one file, an ES module or a classic script. They import nothing of this package,
no package and, but for node.mjs, nothing of a platform.
"""
